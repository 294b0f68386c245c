//! Remotes that the operator grants to a workspace: where they are, and how the host proves who it is there.
//!
//! Nothing here is read from the workspace's repository, which an agent may have written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::CommandResult;

/// Longest address of a remote, bytes.
const URL_BYTES_MAX: usize = 1024;
/// Longest token, bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// A remote that the operator grants.
#[derive(Debug, Clone)]
pub struct Remote {
    /// As tools name it, such as `origin`.
    pub name: String,
    pub url: RemoteUrl,
    pub access: RemoteAccess,
    /// The grant holds in this workspace only. `None`: in each whose repository names the same address.
    pub workspace: Option<PathBuf>,
}

/// How the host proves who it is.
#[derive(Debug, Clone)]
pub enum RemoteAccess {
    /// It does not: the remote is open to everybody.
    Open,
    /// The password of this user.
    Token { user: String, token: TokenSource },
    /// A private key, and the file of the hosts whose keys are known.
    Key { file: PathBuf, known_hosts: PathBuf },
}

type FindToken = dyn Fn() -> Result<String, String> + Send + Sync;

/// Where a token is looked up each time it is used. It may block, and is never shown.
#[derive(Clone)]
pub struct TokenSource(Arc<FindToken>);

impl TokenSource {
    /// `find` returns the token, or why there is none.
    pub fn new(find: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// The token. Not one that would be read as more than one line of git's credential protocol.
    pub fn find(&self) -> Result<String, String> {
        let token = (self.0)()?;
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX || token.contains(['\n', '\r', '\0']) {
            return Err(format!("the token is not one line of 1 to {TOKEN_BYTES_MAX} bytes"));
        }
        Ok(token)
    }
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// An address over https, http or ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    text: String,
    scheme: Scheme,
    user: Option<String>,
    /// Lower case.
    host: String,
    port: Option<u16>,
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Https,
    Http,
    Ssh,
}

impl RemoteUrl {
    /// Parses `https://host/path`, `http://host/path`, `ssh://user@host/path` and `user@host:path`.
    ///
    /// # Errors
    /// Why it is none of them; a user or password in an address over http is refused.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url = Self::read(text)?;
        if url.scheme != Scheme::Ssh && url.user.is_some() {
            return Err("the address contains a user name or password: name the token with `token`".to_owned());
        }
        Ok(url)
    }

    fn read(text: &str) -> Result<Self, String> {
        let bad = || {
            "an address is https://host/path, http://host/path, ssh://user@host/path or user@host:path; a folder is none".to_owned()
        };
        let plain = |c: char| c.is_ascii_graphic() && !"\\\"'`$;|&<>(){}*?!#^".contains(c);
        if text.len() > URL_BYTES_MAX || !text.chars().all(plain) {
            return Err(bad());
        }
        let (scheme, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("ssh" | "git+ssh" | "ssh+git", rest)) => (Scheme::Ssh, rest),
            Some(_) => return Err(bad()),
            // `host:path`, as ssh has it. `helper::address` would be another program's.
            None if text.contains("::") => return Err(bad()),
            None => {
                let (authority, path) = text.split_once(':').ok_or_else(bad)?;
                return Self::of(text, Scheme::Ssh, authority, None, path).ok_or_else(bad);
            }
        };
        let (authority, path) = rest.split_once('/').ok_or_else(bad)?;
        // Behind the user, whose password may hold a colon.
        let at = authority.rfind('@').map_or(0, |at| at + 1);
        let (authority, port) = match authority[at..].rfind(':') {
            Some(colon) if !authority.ends_with(']') => {
                let port = authority[at + colon + 1..].parse().map_err(|_| bad())?;
                (&authority[..at + colon], Some(port))
            }
            _ => (authority, None),
        };
        Self::of(text, scheme, authority, port, path).ok_or_else(bad)
    }

    fn of(text: &str, scheme: Scheme, authority: &str, port: Option<u16>, path: &str) -> Option<Self> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        let host = host.to_ascii_lowercase();
        let fine = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        // What begins with a dash would be an option to ssh.
        let named = !host.is_empty() && host.chars().all(fine) && !host.starts_with('-');
        // Brackets are an address of IP's version 6, and nothing else.
        let plain = |text: &str| !text.is_empty() && !text.starts_with('-') && !text.contains(['[', ']']);
        let user_fine = user.as_deref().is_none_or(plain);
        let path = path.trim_start_matches('/');
        let path_fine = plain(path) && !path.split('/').any(|part| part == "..");
        (named && user_fine && path_fine).then(|| Self {
            text: text.to_owned(),
            scheme,
            user,
            host,
            port,
            path: path.trim_end_matches('/').trim_end_matches(".git").to_owned(),
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_ssh(&self) -> bool {
        self.scheme == Scheme::Ssh
    }

    /// Whether nobody on the way can read what is sent.
    pub fn is_private(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        self.scheme != Scheme::Http || address.is_ok_and(|address| address.is_loopback())
    }

    /// Whether this address of a repository's means the same place; a user or password in it is passed over.
    pub fn is_same(&self, other: &str) -> bool {
        let usual = |url: &Self| match url.scheme {
            Scheme::Https => 443,
            Scheme::Http => 80,
            Scheme::Ssh => 22,
        };
        Self::read(other).is_ok_and(|other| {
            let place = |url: &Self| (url.scheme, url.host.clone(), url.port.unwrap_or(usual(url)), url.path.clone());
            let user = self.scheme != Scheme::Ssh || self.user == other.user;
            place(self) == place(&other) && user
        })
    }

    /// The word by which git calls its way there.
    pub fn protocol(&self) -> &'static str {
        match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
            Scheme::Ssh => "ssh",
        }
    }

    /// Scheme, host and port, as git looks up what it proves who it is with.
    pub fn origin(&self) -> String {
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{}://{}{port}", self.protocol(), self.host)
    }
}

impl std::fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Remote {
    /// Whether the grant may hold in the workspace at `root`.
    pub fn is_for(&self, root: &Path) -> bool {
        self.workspace.as_deref().is_none_or(|workspace| workspace == root)
    }
}

/// What git does with a granted remote, in a repository of the host's own that borrows the workspace's objects.
#[derive(Debug, Clone)]
pub struct RemoteCommand {
    /// Of bash. `$1` is the remote's address; it runs in the bare repository.
    pub script: String,
    /// `$2`, `$3`, …
    pub arguments: Vec<String>,
    /// `sha1` or `sha256`, as the workspace's repository has it.
    pub object_format: String,
    /// Commits that the workspace's repository has, of which the remote may be told.
    pub known: Vec<String>,
    pub timeout: Duration,
    pub capture_bytes: usize,
}

/// What came of it.
#[derive(Debug)]
pub struct RemoteResult {
    pub result: CommandResult,
    /// The objects that were fetched, as a pack.
    pub pack: Option<std::fs::File>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_remotes() {
        for good in [
            "https://git.example.org/team/project.git",
            "http://127.0.0.1:8080/a/b.git",
            "ssh://git@git.example.org:2222/team/project.git",
            "git@git.example.org:team/project.git",
            "https://[::1]:8443/a.git",
        ] {
            assert!(RemoteUrl::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "ext::sh -c evil",
            "ext::sh",
            "file:///etc",
            "/etc/passwd",
            "./remote.git",
            "ssh://-oProxyCommand=evil/x",
            "-oProxyCommand=evil:x",
            "ssh://git@-evil/x",
            "git@host:-option",
            "https://user:password@host/x",
            "https://user@host/x",
            "https://host",
            "https://host/../x",
            "https://host:port/x",
            "https://ho st/x",
            "https://host/x\nurl=y",
            "git@host:$(evil)",
            "https://host/[x]",
            "[git]@host:x",
        ] {
            assert!(RemoteUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        let same = |one: &str, other: &str| RemoteUrl::parse(one).is_ok_and(|url| url.is_same(other));
        assert!(same("https://Host/a/b.git", "https://host:443/a/b/"));
        assert!(same("https://host/a.git", "https://user:secret@host/a"));
        assert!(same("git@host:a/b.git", "ssh://git@host/a/b"));
        assert!(!same("https://host/a", "http://host/a"));
        assert!(!same("https://host/a", "https://host:8443/a"));
        assert!(!same("https://host/a", "https://host.evil/a"));
        assert!(!same("https://host/a", "https://host/b"));
        assert!(!same("git@host:a", "other@host:a"));
        assert!(!same("https://host/a", "ext::sh -c a"));
    }

    #[test]
    fn a_token_goes_over_nothing_that_others_read() {
        let private = |text: &str| RemoteUrl::parse(text).is_ok_and(|url| url.is_private());
        assert!(private("https://host/a") && private("http://127.0.0.1:80/a") && private("http://[::1]/a"));
        assert!(!private("http://host/a") && !private("http://127.0.0.1.evil/a") && !private("http://10.0.0.1/a"));
    }

    #[test]
    fn a_token_is_one_line_and_is_not_shown() {
        let found = |token: &'static str| TokenSource::new(move || Ok(token.to_owned()));
        assert_eq!(found("abc").find(), Ok("abc".to_owned()));
        assert!(found("abc\nhost=evil").find().is_err() && found("").find().is_err());
        assert_eq!(format!("{:?}", found("abc")), "***");
    }
}
