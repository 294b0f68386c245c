//! Asking the person at this terminal.

use std::io::{BufRead, IsTerminal};

use toolhost_host::{ApprovalRequest, Approver, Decision, NobodyHere};
use toolhost_sandbox::BoxFuture;

use crate::print::{self, BOLD, DIM, WARN, paint, visible};

/// Shows the call and asks; anything but a clear yes is a no.
struct Terminal;

/// The terminal if a person is at it, otherwise nobody.
pub(crate) fn here() -> std::sync::Arc<dyn Approver> {
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        std::sync::Arc::new(Terminal)
    } else {
        std::sync::Arc::new(NobodyHere)
    }
}

impl Approver for Terminal {
    fn place(&self) -> &'static str {
        "terminal"
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            show(request);
            let answer = tokio::task::spawn_blocking(|| {
                let mut answer = String::new();
                std::io::stdin().lock().read_line(&mut answer).map(|_| answer)
            });
            match answer.await {
                Ok(Ok(answer)) => understand(&answer),
                // A closed terminal is not a yes.
                _ => Decision::Deny { comment: None },
            }
        })
    }
}

fn show(request: &ApprovalRequest) {
    let arguments = serde_json::to_string_pretty(&request.arguments).unwrap_or_default();
    print::note(format_args!(
        "\n{} {} wants to run {} ({})\n{}\n{}\n{}",
        paint(WARN, "approval needed:"),
        visible(&request.persona),
        paint(BOLD, &request.tool),
        visible(&request.why),
        visible(&arguments),
        paint(DIM, format_args!("call {}, digest {}", request.call_id, request.digest)),
        "allow? y = yes, anything else = no (a comment after `n ` goes back to the model)"
    ));
}

fn understand(answer: &str) -> Decision {
    let answer = answer.trim();
    if matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes") {
        return Decision::Allow;
    }
    let comment =
        answer.strip_prefix("n ").or_else(|| answer.strip_prefix("no ")).map(|comment| comment.trim().to_owned());
    Decision::Deny { comment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for yes in ["y", "Y\n", " yes \n"] {
            assert_eq!(understand(yes), Decision::Allow, "{yes:?}");
        }
        for no in ["", "\n", "n", "no", "yess", "ok", "sure", "1", "y y"] {
            assert_eq!(understand(no), Decision::Deny { comment: None }, "{no:?}");
        }
        assert_eq!(understand("n use main\n"), Decision::Deny { comment: Some("use main".to_owned()) });
    }
}
