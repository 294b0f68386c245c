//! Asking the person at this terminal.
//!
//! Line by line, or by single keys, and not with a full-screen prompt: somebody else's answer, from another terminal or from
//! the client, must be able to end the question without leaving the terminal in a mode of its own.

use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use serde_json::Value;
use toolhost::Host;
use toolhost_contract::{Answer, BoxFuture, ErrorKind, ToolError, quoted};
use toolhost_host::{
    Decision, EditRules, PERMIT_LIVES_MS_DEFAULT, Person, Presented, Presenter, Queue, Shown, Standing, ask_id,
};
use toolhost_sandbox::typing::forget_typed;
use toolhost_store::{Ask, AskKind, AskState};

use crate::Usage;
use crate::editor;
use crate::keyboard::{Keyboard, SingleKeys, Typed};
use crate::print::{self, BAD, DIM, WARN, paint, visible, visible_line};
use crate::projects;

/// A key that comes sooner after a question was shown was not meant for it.
const KEYS_SETTLE: Duration = Duration::from_millis(400);

/// The terminal, if a person is at it.
pub(crate) struct Terminal {
    person: Person,
    queue: Queue,
    rules: Option<EditRules>,
    keyboard: tokio::sync::Mutex<Keyboard>,
    /// Whether one key is an answer: where a person does nothing else but answer, and types nothing that is meant otherwise.
    takes_keys: bool,
}

/// Whether somebody can be asked here.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether the person at the terminal says yes; where nobody is, `instead` says what to do.
pub(crate) fn agreed(question: &str, instead: &str) -> anyhow::Result<bool> {
    if !is_there() {
        return Err(Usage::error(format!("nobody is at the terminal to agree: {instead}")));
    }
    print::note(format_args!("{question} y = yes, anything else = no"));
    if forget_typed() {
        return Ok(false);
    }
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

/// What came of asking.
pub(crate) enum Asked {
    Decided(Decision),
    /// It stays open, or the terminal has gone.
    Later,
    /// It stays open, and so does all that would be asked next.
    Leave,
}

impl Terminal {
    pub(crate) fn new(person: Person, queue: Queue, rules: Option<EditRules>) -> Self {
        Self { person, queue, rules, keyboard: tokio::sync::Mutex::default(), takes_keys: false }
    }

    /// One that takes single keys as answers. Whoever uses it handles the signals that end a process: the terminal is left as
    /// it was.
    pub(crate) fn with_keys(self) -> Self {
        Self { takes_keys: true, ..self }
    }

    /// For the calls of a host.
    pub(crate) fn of(host: &Host) -> Self {
        let rules = host.gate().edit_rules();
        Self::new(host.connection().person(), host.gate().queue().clone(), Some(rules))
    }

    /// The next line; `None` when the terminal has gone.
    async fn line(&self) -> Option<String> {
        self.keyboard.lock().await.line().await
    }

    /// The next answer, as somebody would write it in a line.
    async fn answer(&self, shown: &Shown, keys: &mut Option<SingleKeys>) -> Option<String> {
        if keys.is_none() {
            return self.line().await;
        }
        let key = match self.keyboard.lock().await.typed().await? {
            Typed::Line(line) => return Some(line),
            Typed::Key(key) => key.to_string(),
        };
        let wanted = match whole_word(shown, &key) {
            "deny" => "comment for the agent, or Enter for none> ",
            "feedback" => "what to do better, or Enter for your editor> ",
            // The editor has the terminal as it was.
            "edit" => {
                *keys = None;
                return Some(key);
            }
            _ => return Some(key),
        };
        *keys = None;
        let text = self.prompt(wanted).await?;
        Some(format!("{key} {text}"))
    }

    /// Single keys, where one is an answer: a text is typed in a line.
    fn keys(&self, shown: &Shown) -> Option<SingleKeys> {
        if self.takes_keys && !wants_text(shown) { SingleKeys::on() } else { None }
    }

    /// Returns when the person leaves while nothing is asked: `q`, Ctrl-D, or the terminal has gone.
    pub(crate) async fn left(&self) {
        let mut keyboard = self.keyboard.lock().await;
        while let Some(typed) = keyboard.typed().await {
            let is_leaving = match &typed {
                Typed::Key(key) => *key == 'q',
                Typed::Line(line) => matches!(line.trim(), "q" | "quit"),
            };
            if is_leaving {
                return;
            }
        }
    }

    /// The next line behind a prompt; `None` when the terminal has gone.
    pub(crate) async fn prompt(&self, prompt: &str) -> Option<String> {
        print::prompt(prompt);
        self.line().await
    }

    /// What was typed before a question was there is no answer to it.
    async fn forget_typed(&self) {
        self.keyboard.lock().await.forget();
    }

    /// Shows the ask and asks until something is understood. Nothing but a clear yes is a yes. `place`: the how many-th of how
    /// many it is.
    pub(crate) async fn ask(&self, ask: &Ask, shown: &Shown, place: Option<(usize, usize)>) -> Asked {
        let mut pages = Pages::of(shown);
        let mut keys = self.keys(shown);
        if keys.is_some() {
            show_first(ask, &mut pages, place);
            tokio::time::sleep(KEYS_SETTLE).await;
            self.forget_typed().await;
        } else {
            self.forget_typed().await;
            show_first(ask, &mut pages, place);
        }
        loop {
            if let Err(error) = self.tell_seen(ask, shown, &pages).await {
                print::note(format_args!("{} {}", paint(BAD, "not written down:"), visible(&error.message)));
            }
            keys = keys.or_else(|| self.keys(shown));
            print::note(menu(shown, &pages, keys.is_some()));
            let Some(line) = self.answer(shown, &mut keys).await else { return Asked::Later };
            let line = line.trim();
            let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
            let rest = (!rest.is_empty()).then(|| rest.to_owned());
            // A word behind which others stand begins an answer in words.
            let word = match word {
                _ if wants_text(shown) && rest.is_some() => "answer",
                // As the head of the watch says.
                "q" if wants_text(shown) && self.takes_keys => "quit",
                word => whole_word(shown, word),
            };
            let said = match word {
                "later" => return Asked::Later,
                "quit" => return Asked::Leave,
                "help" => {
                    print::note(help(shown));
                    continue;
                }
                "more" if pages.are_left() => {
                    pages.show_next();
                    continue;
                }
                "rule" => self.by_rule(shown, &mut keys).await,
                "" => continue,
                "answer" if shown.kind == AskKind::Question => {
                    shown.chosen(line.to_owned()).and_then(|text| shown.answer("answer", Some(text))).map(plain)
                }
                _ => self.with_text(shown, word, rest).await,
            };
            let said = match said {
                Ok(Some(decision)) => self.check(ask, shown, &decision).await.map(|()| Some(decision)),
                said => said,
            };
            match said {
                Ok(Some(decision)) => return Asked::Decided(decision),
                Ok(None) => {}
                Err(error) => print::note(format_args!("{} {}", paint(BAD, "not taken:"), visible(&error.message))),
            }
        }
    }

    async fn by_rule(&self, shown: &Shown, keys: &mut Option<SingleKeys>) -> Result<Option<Decision>, ToolError> {
        let Some(rule) = shown.rule_text().map(|rule| print::asked(&quoted(&rule))) else {
            print::note(paint(WARN, "this is allowed one call at a time, never by a rule"));
            return Ok(None);
        };
        let hours = PERMIT_LIVES_MS_DEFAULT / 3_600_000;
        print::note(format_args!("{rule}\nallow this for {hours} hours? y = yes, anything else = no"));
        let yes = self.answer(shown, keys).await.is_some_and(|line| is_yes(&line));
        let conditions = shown.rule.clone().filter(|_| yes);
        let standing = conditions.map(|conditions| Standing { conditions, lives_ms: PERMIT_LIVES_MS_DEFAULT });
        Ok(standing.map(|standing| Decision { answer: Answer::Allow, rule: Some(standing) }))
    }

    async fn with_text(&self, shown: &Shown, word: &str, rest: Option<String>) -> Result<Option<Decision>, ToolError> {
        let text = match (word, rest) {
            ("allow" | "pass" | "yes" | "no" | "cancel", Some(_)) => {
                let message =
                    format!("`{word}` stands alone: with other words behind it, it may have been meant otherwise");
                return Err(ToolError::new(ErrorKind::Validation, message));
            }
            (_, Some(rest)) => Some(rest),
            ("edit", None) => {
                print::note(match shown.kind {
                    AskKind::Approval => {
                        "your editor opens all arguments of the call as JSON: save others to allow the call with those"
                    }
                    _ => "your editor opens the text: what you save there is returned instead of it",
                });
                let before = match shown.kind {
                    AskKind::Approval => pretty(&shown.arguments),
                    _ => shown.detail.clone(),
                };
                let Some(after) = edited(before, if shown.kind == AskKind::Approval { "json" } else { "md" }).await
                else {
                    return Ok(None);
                };
                Some(after)
            }
            ("feedback", None) => {
                let Some(text) = edited(String::new(), "md").await else { return Ok(None) };
                Some(text)
            }
            _ => None,
        };
        shown.answer(word, text).map(plain)
    }

    /// Somebody who has been shown the last page has been shown all of them.
    async fn tell_seen(&self, ask: &Ask, shown: &Shown, pages: &Pages) -> Result<(), ToolError> {
        if pages.are_left() { Ok(()) } else { self.queue.saw(&self.person, ask, shown, self.place()).await }
    }

    /// What the queue will say of it, said while it can be said otherwise; and edited arguments must be such that the tool
    /// takes them and no rule denies them.
    pub(crate) async fn check(&self, ask: &Ask, shown: &Shown, decision: &Decision) -> Result<(), ToolError> {
        let answer = &decision.answer;
        self.queue.check(&self.person, ask, shown, answer).await?;
        match &self.rules {
            Some(rules) => rules.check(shown, answer).await,
            None => Ok(()),
        }
    }
}

impl Presenter for Terminal {
    fn place(&self) -> &'static str {
        "terminal"
    }

    fn person(&self) -> Person {
        self.person.clone()
    }

    fn present<'a>(&'a self, ask: &'a Ask, shown: &'a Shown) -> BoxFuture<'a, Presented> {
        Box::pin(async move {
            match self.ask(ask, shown, None).await {
                Asked::Decided(decision) => Presented::Decided(decision),
                Asked::Later | Asked::Leave => Presented::Gone,
            }
        })
    }

    fn ended(&self, ask: &Ask) {
        if ask.state == AskState::Open {
            let id = ask_id(ask.number);
            return print::note(paint(DIM, format_args!("{id} stays open: `toolhost review decide {id}`")));
        }
        let by = ask.answered_by.as_deref().unwrap_or("nobody");
        print::note(format_args!(
            "{} {}",
            paint(DIM, format_args!("{} was answered elsewhere, by", ask_id(ask.number))),
            visible_line(by)
        ));
    }
}

fn plain(answer: Answer) -> Option<Decision> {
    Some(Decision { answer, rule: None })
}

/// What an ask shows, and how much of it has been on the screen.
struct Pages {
    pages: Vec<String>,
    shown: usize,
    rule: Option<String>,
}

impl Pages {
    fn of(shown: &Shown) -> Self {
        // A question has no commands that could not be its answer, and is never long.
        let pages = if shown.kind == AskKind::Question { vec![shown.render()] } else { shown.pages() };
        Self { pages, shown: 0, rule: shown.rule_text() }
    }

    fn are_left(&self) -> bool {
        self.shown < self.pages.len()
    }

    fn show_next(&mut self) {
        let Some(page) = self.pages.get(self.shown) else { return };
        self.shown += 1;
        print::note(print::asked(page));
        if self.are_left() {
            let note = format_args!("NOT ALL OF IT: page {} of {}", self.shown, self.pages.len());
            print::note(paint(BAD.bold(), note));
        } else if let Some(rule) = &self.rule {
            print::note(format_args!("{}\n{}", paint(DIM, "[r]ule would allow:"), print::asked(&quoted(rule))));
        }
    }
}

/// The first page of an ask, or all of a short one.
fn show_first(ask: &Ask, pages: &mut Pages, place: Option<(usize, usize)>) {
    let what = match ask.kind {
        AskKind::Approval => "approval needed",
        AskKind::Review => "review wanted",
        AskKind::Question => "question",
    };
    let now = projects::clock().unix_ms();
    let mut facts = vec![ask_id(ask.number)];
    facts.extend(place.map(|(number, of)| format!("{number} of {of}")));
    facts.push(format!("asked {} ago", print::span(now - ask.created_at_ms)));
    facts.extend(ask.session_id.as_deref().map(|session| format!("session {}", visible_line(session))));
    facts.push(format!("{} left", print::span(ask.expires_at_ms - now)));
    print::note(format_args!("\n{} {}", paint(WARN, what), paint(DIM, facts.join(" · "))));
    pages.show_next();
}

/// The answers in a line. `is_key`: one key is an answer; else a letter with Enter.
fn menu(shown: &Shown, pages: &Pages, is_key: bool) -> String {
    let left = pages.are_left();
    let mut words = match shown.kind {
        AskKind::Approval if left || shown.left_out > 0 => vec!["[d]eny COMMENT"],
        AskKind::Approval if !shown.editable => vec!["[a]llow", "[d]eny COMMENT"],
        AskKind::Approval => vec!["[a]llow", "[e]dit arguments", "[d]eny COMMENT"],
        AskKind::Question if shown.answers().contains(&"yes") => vec!["[y]es", "[n]o", "[c]ancel"],
        AskKind::Question => {
            let answer = if shown.choices.is_empty() { "the answer" } else { "the number of an answer, or another" };
            return format!("{answer} in one line, or one of these words: cancel, later, quit");
        }
        AskKind::Review if left => vec!["[e]dit text", "[c]ancel"],
        AskKind::Review if shown.answers().contains(&"feedback") => {
            vec!["[p]ass", "[e]dit text", "[f]eedback TEXT", "[c]ancel"]
        }
        AskKind::Review => vec!["[p]ass", "[e]dit text", "[c]ancel"],
    };
    if shown.rule.is_some() && !left {
        words.insert(1, "allow by [r]ule");
    }
    if left {
        words.insert(0, "[m]ore");
    }
    words.push("[l]ater");
    words.push(if is_key { "[?]" } else { "[?]  then Enter" });
    words.join("  ")
}

/// What each answer does, a line each.
fn help(shown: &Shown) -> String {
    let answers = shown.answers();
    let is_approval = shown.kind == AskKind::Approval;
    let hours = PERMIT_LIVES_MS_DEFAULT / 3_600_000;
    let by_rule = format!("allow it, and for {hours} hours calls that the rule shown above matches");
    let lines = [
        ("a", is_approval, "allow this one call"),
        ("r", shown.rule.is_some(), &*by_rule),
        (
            "e",
            is_approval && shown.editable,
            "change the arguments in your editor; saving others allows the call with those",
        ),
        ("d", is_approval, "deny it; words behind it are your comment for the agent"),
        ("p", answers.contains(&"pass"), "pass: the text is right as it is"),
        ("e", answers.contains(&"edit") && !is_approval, "change the text in your editor; what you save is returned"),
        ("f", answers.contains(&"feedback"), "say what to do better; the agent tries again"),
        ("y", answers.contains(&"yes"), "yes"),
        ("n", answers.contains(&"no"), "no"),
        ("c", answers.contains(&"cancel"), "cancel: no answer is given"),
        ("m", shown.kind != AskKind::Question, "show the next page of a long one"),
        ("l", true, "leave it open, and go on"),
        ("q", true, "leave it open, and ask nothing more here"),
    ];
    let lines = lines.iter().filter(|(_, there, _)| *there).map(|(key, _, does)| format!("  {key}  {does}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the answer is in the person's own words.
fn wants_text(shown: &Shown) -> bool {
    shown.kind == AskKind::Question && shown.answers().contains(&"answer")
}

/// The word that a letter stands for; whatever is none of them stands for itself.
fn whole_word<'a>(shown: &Shown, typed: &'a str) -> &'a str {
    let lower = typed.to_ascii_lowercase();
    if wants_text(shown) {
        // One letter may be the answer.
        return match lower.as_str() {
            "cancel" => "cancel",
            "later" => "later",
            "quit" => "quit",
            "?" => "help",
            "" => "",
            _ => "answer",
        };
    }
    let approval = shown.kind == AskKind::Approval;
    match lower.as_str() {
        "a" | "allow" | "y" | "yes" if approval => "allow",
        "d" | "deny" | "n" | "no" if approval => "deny",
        "r" | "rule" if shown.rule.is_some() => "rule",
        "e" | "edit" if shown.kind != AskKind::Question => "edit",
        "m" | "more" if shown.kind != AskKind::Question => "more",
        "l" | "later" => "later",
        "q" | "quit" => "quit",
        "?" | "help" => "help",
        "p" | "pass" if shown.kind == AskKind::Review => "pass",
        "f" | "feedback" if shown.kind == AskKind::Review => "feedback",
        "c" | "cancel" if !approval => "cancel",
        "y" | "yes" if shown.answers().contains(&"yes") => "yes",
        "n" | "no" if shown.answers().contains(&"no") => "no",
        _ => typed,
    }
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// What the person makes of a text in their editor; `None`: they left it, or it did not start.
async fn edited(before: String, extension: &'static str) -> Option<String> {
    let made = tokio::task::spawn_blocking(move || editor::edit(&before, extension)).await;
    match made {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => {
            print::failure(&error);
            None
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval() -> Shown {
        serde_json::from_value(serde_json::json!({
            "kind": "approval", "title": "Push", "tool": "git.push", "effect": "reaches", "why": "w", "persona": "p",
            "profile": "all", "summary": "s", "detail": "", "arguments": {}, "rule": null, "wanted": null, "round": 1,
        }))
        .expect("these are its fields")
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let shown = approval();
        for yes in ["y", "Y", "yes", "a", "allow", "ALLOW"] {
            assert_eq!(whole_word(&shown, yes), "allow", "{yes:?}");
        }
        for no in ["", "n", "no", "yess", "ok", "sure", "1", "al", "pass", "r"] {
            assert_ne!(whole_word(&shown, no), "allow", "{no:?}");
            let word = whole_word(&shown, no);
            assert!(!matches!(shown.answer(word, None), Ok(Answer::Allow)), "{no:?}");
        }
    }
}
