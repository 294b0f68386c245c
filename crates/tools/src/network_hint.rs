//! Which hosts a command may reach, said where it could not reach one.

use toolhost_contract::named;
use toolhost_contract::workspace::{CommandResult, Fence, Tier};

/// What programs say that found no address, or no way to one.
const UNREACHED: [&str; 10] = [
    "Could not resolve host",
    "Could not resolve hostname",
    "Temporary failure in name resolution",
    "Temporary failure resolving",
    "Name or service not known",
    "failed to lookup address information",
    "getaddrinfo ENOTFOUND",
    "getaddrinfo EAI_AGAIN",
    "Network is unreachable",
    "dial tcp: lookup",
];
/// Most hosts named.
const HOSTS_MAX: usize = 10;

/// What to add to the answer of a command that failed because its profile does not grant the network it wanted.
pub(crate) fn for_command(fence: &Fence, result: &CommandResult) -> Option<String> {
    let failed = result.exit_code != 0 && result.tier != Tier::Off;
    if failed { hint_for(fence, &[&result.stderr.text, &result.stdout.text]) } else { None }
}

fn hint_for(fence: &Fence, said: &[&str]) -> Option<String> {
    if !UNREACHED.iter().any(|words| said.iter().any(|text| text.contains(words))) {
        return None;
    }
    let hosts: Vec<String> = fence.network.iter().map(ToString::to_string).collect();
    let granted = match hosts.is_empty() {
        true => "no network".to_owned(),
        false => format!("only {}, through the proxy in `https_proxy`", named(&hosts, HOSTS_MAX)),
    };
    Some(format!("this profile grants commands {granted}; ask the person if it has to be more"))
}

#[cfg(test)]
mod tests {
    use toolhost_contract::workspace::{Access, HostRule};

    use super::*;

    #[test]
    fn who_finds_no_host_is_told_which_ones_there_are() {
        let closed = Fence::closed(Access::Write);
        let said = ["curl: (6) Could not resolve host: example.org\n"];
        assert!(hint_for(&closed, &said).is_some_and(|hint| hint.contains("no network")));
        let network = HostRule::parse("crates.io").into_iter().collect();
        let some = Fence { network, ..closed.clone() };
        assert!(hint_for(&some, &said).is_some_and(|hint| hint.contains("only crates.io")));
        assert_eq!(hint_for(&closed, &["cat: no such file\n"]), None);
    }
}
