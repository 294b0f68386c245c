//! `human.ask`

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{
    Answer, Asked, Ctx, ErrorKind, Example, Expect, Facts, Question, Tool, ToolError, Wanted, is_deceptive,
    visible_line,
};

/// Answers that a question offers: as many as one digit counts.
const CHOICES_MAX: usize = 9;
const CHOICE_CHARS_MAX: usize = 200;
/// What a person types at a terminal to leave a question.
const RESERVED: [&str; 5] = ["cancel", "later", "quit", "q", "?"];

pub(crate) struct Ask;

/// Asks a person one question. Waits for their answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The question, with what one must know.
    #[schemars(length(min = 1, max = 20000))]
    question: String,
    /// `yes_no`: yes or no is the answer.
    #[serde(default)]
    kind: Kind,
    /// To choose from.
    #[serde(default)]
    choices: Vec<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Text,
    YesNo,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// `answered`, or `pending_answer` while nobody has.
    status: String,
    /// `yes`, `no`, the choice, or the text.
    answer: Option<String>,
    by: Option<String>,
    /// `pending_answer`: `approval.wait` takes this.
    approval_id: Option<String>,
    /// `pending_answer`: until when an answer is waited for, milliseconds since 1970.
    expires_at: Option<i64>,
}

/// Each choice is words of its own, which no number and no other choice can be taken for.
fn check(choices: &[String]) -> Result<(), ToolError> {
    let wrong = |message: String| Err(ToolError::new(ErrorKind::Validation, message));
    if choices.len() > CHOICES_MAX {
        return wrong(format!("a question has at most {CHOICES_MAX} choices"));
    }
    let mut seen = BTreeSet::new();
    for choice in choices {
        let words = choice.trim().to_lowercase();
        if !words.chars().any(char::is_alphabetic) {
            return wrong(format!(
                "the choice `{}` has no word in it: write what it means, such as \"30 days\"",
                visible_line(choice)
            ));
        }
        if choice.chars().count() > CHOICE_CHARS_MAX {
            return wrong(format!("a choice has at most {CHOICE_CHARS_MAX} characters"));
        }
        if choice.contains(is_deceptive) {
            return wrong(format!("the choice `{}` has characters that cannot be seen", visible_line(choice)));
        }
        if RESERVED.contains(&&*words) {
            return wrong(format!("the choice `{words}` is a word that ends the question: choose another"));
        }
        if !seen.insert(words) {
            return wrong(format!("the choice `{}` is there twice", visible_line(choice)));
        }
    }
    Ok(())
}

impl Tool for Ask {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "human.ask";
    const TITLE: &'static str = "Ask a person";
    const FACTS: Facts = Facts::ASKS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a person has to be there",
            arguments: json!({"question": "May the old API go?", "kind": "yes_no"}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::Denied),
        }]
    }

    fn render(&self, output: &Output) -> String {
        match (&output.answer, &output.approval_id) {
            (Some(answer), _) => answer.clone(),
            (None, Some(id)) => {
                format!("the question waits for a person as {id}; `approval.wait` with this approvalId goes on waiting")
            }
            (None, None) => "no answer".to_owned(),
        }
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        check(&input.choices)?;
        let wanted = match input.kind {
            Kind::YesNo if !input.choices.is_empty() => {
                return Err(ToolError::new(ErrorKind::Validation, "a question of yes or no has no `choices`")
                    .hint("leave `kind` out, or `choices`"));
            }
            Kind::Text => Wanted::Text,
            Kind::YesNo => Wanted::YesOrNo,
        };
        let subject = format!("question:{}", input.question);
        let question = Question { wanted, subject, title: input.question, text: String::new(), choices: input.choices };
        let mut output =
            Output { status: "answered".to_owned(), answer: None, by: None, approval_id: None, expires_at: None };
        match ctx.people.ask(&question).await? {
            Asked::Pending(pending) => {
                "pending_answer".clone_into(&mut output.status);
                output.approval_id = Some(pending.approval_id);
                output.expires_at = Some(pending.expires_at_ms);
            }
            Asked::Answered { answer, by, .. } => {
                output.by = Some(by);
                output.answer = Some(match answer {
                    Answer::Yes => "yes".to_owned(),
                    Answer::No => "no".to_owned(),
                    Answer::Text { text } => text,
                    // Whatever else was said is no answer.
                    _ => {
                        return Err(ToolError::new(ErrorKind::Cancelled, "the person did not want to answer this")
                            .hint("go on without the answer, or ask something else"));
                    }
                });
            }
        }
        Ok(output)
    }
}
