//! MCP prompts: what a person begins with in a client that offers them. What a prompt tells a model of is read through the gate, as a
//! call of the tool that tells it.

use rmcp::ErrorData;
use rmcp::model::{Prompt, PromptArgument};
use serde_json::{Map, Value, json};

/// Longest value of an argument.
const VALUE_CHARS_MAX: usize = 4000;

/// A prompt.
pub(crate) struct Template {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    argument: Argument,
    /// The tools without which it is of no use.
    needs: &'static [&'static str],
    /// What the model is told first, with the names of tools between backticks. A sentence that names a tool which the profile does not
    /// have is left out.
    says: &'static [&'static str],
    /// The tool whose answer it is told then, and whether that takes the prompt's argument.
    reads: (&'static str, Option<&'static str>),
}

/// The argument of a prompt.
struct Argument {
    name: &'static str,
    description: &'static str,
    is_required: bool,
}

const PROMPTS: [Template; 3] = [
    Template {
        name: "start-ticket",
        title: "Start a ticket",
        description: "Works on a ticket: reads it, makes a plan, does the work and moves the ticket on.",
        argument: Argument { name: "ticketId", description: "The ticket, such as TKT-001", is_required: true },
        needs: &["ticket.read"],
        says: &[
            "Work on the ticket below.",
            "Read first what of the workspace it is about.",
            "Say in a comment on the ticket how you will do it (`comment.post`) before you change anything.",
            "Check each of its criteria when you are done, and say what does not hold.",
            "Commit with the number of the ticket in the message (`git.commit`).",
            "Move the ticket on (`ticket.update_state`) where its criteria hold.",
        ],
        reads: ("ticket.read", Some("ticketId")),
    },
    Template {
        name: "review-change",
        title: "Review a change",
        description: "Reviews what has changed in the workspace since a commit or branch, or since the last commit.",
        argument: Argument { name: "base", description: "The commit or branch to compare with", is_required: false },
        needs: &["git.diff"],
        says: &[
            "Review the change below.",
            "Read what stands around it (`file.read`) before you judge.",
            "Look for what is wrong, what can go wrong, what is not tested and what can be simpler.",
            "Name the file and the line of each finding, the worst first, and change nothing.",
        ],
        reads: ("git.diff", Some("base")),
    },
    Template {
        name: "create-workflow",
        title: "Create a workflow",
        description: "Writes a workflow of the package as a change set, which a person applies.",
        argument: Argument { name: "goal", description: "What the workflow should do", is_required: true },
        needs: &["builder.change.stage", "builder.schema.read"],
        says: &[
            "Write a workflow for the goal below.",
            "Look first at what the package has (`builder.context.get`).",
            "Stage it as one change set (`builder.change.stage`), validate it (`builder.change.validate`) and correct what the validation finds.",
            "A person applies it: say what it does and what they have to look at.",
        ],
        reads: ("builder.schema.read", None),
    },
];

/// The prompts of a profile that has these tools.
pub(crate) fn all(has: impl Fn(&str) -> bool) -> Vec<Prompt> {
    let usable = PROMPTS.iter().filter(|prompt| prompt.needs.iter().all(|tool| has(tool)));
    usable
        .map(|prompt| {
            let Argument { name, description, is_required } = prompt.argument;
            let argument = PromptArgument::new(name).with_description(description).with_required(is_required);
            Prompt::new(prompt.name, Some(prompt.description), Some(vec![argument])).with_title(prompt.title)
        })
        .collect()
}

/// # Errors
/// There is none of this name.
pub(crate) fn get(name: &str) -> Result<&'static Template, ErrorData> {
    PROMPTS.iter().find(|prompt| prompt.name == name).ok_or_else(|| {
        let known: Vec<&str> = PROMPTS.iter().map(|prompt| prompt.name).collect();
        ErrorData::invalid_params(format!("no prompt has this name; the prompts are {}", known.join(", ")), None)
    })
}

/// The tool, and its argument, that an argument of a prompt is handed to.
pub(crate) fn variable_of(name: &str, argument: &str) -> Option<(&'static str, &'static str)> {
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == name && prompt.argument.name == argument)?;
    Some((prompt.reads.0, prompt.reads.1?))
}

impl Template {
    pub(crate) fn description(&self) -> &'static str {
        self.description
    }

    /// What the person has given.
    ///
    /// # Errors
    /// It is no text, too long, or not there although it has to be.
    pub(crate) fn value(&self, given: Option<Map<String, Value>>) -> Result<Option<String>, ErrorData> {
        let Argument { name, is_required, .. } = self.argument;
        let value = match given.and_then(|mut given| given.remove(name)) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.chars().count() <= VALUE_CHARS_MAX => {
                Some(text).filter(|text| !text.trim().is_empty())
            }
            Some(_) => {
                let why = format!("`{name}` is a text of at most {VALUE_CHARS_MAX} characters");
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        match value {
            None if is_required => Err(ErrorData::invalid_params(format!("`{}` takes `{name}`", self.name), None)),
            value => Ok(value),
        }
    }

    /// The call whose answer the model is told.
    pub(crate) fn call(&self, value: Option<&String>) -> (&'static str, Value) {
        let (tool, argument) = self.reads;
        let arguments = match (argument, value) {
            (Some(argument), Some(value)) => json!({ argument: value }),
            (None, _) => json!({ "topic": "set" }),
            (Some(_), None) => json!({}),
        };
        (tool, arguments)
    }

    /// All that the model is told. `called` answers how a tool is spelled, if the profile has it.
    pub(crate) fn text(&self, value: Option<&String>, read: &str, called: impl Fn(&str) -> Option<String>) -> String {
        let sentences = self.says.iter().filter_map(|says| {
            let mut parts = says.split('`');
            let mut sentence = parts.next().unwrap_or_default().to_owned();
            while let (Some(tool), Some(rest)) = (parts.next(), parts.next()) {
                sentence.push_str(&format!("`{}`{rest}", called(tool)?));
            }
            Some(sentence)
        });
        let mut text = sentences.collect::<Vec<_>>().join(" ");
        if let (None, Some(goal)) = (self.reads.1, value) {
            text.push_str(&format!("\n\nThe goal: {goal}"));
        }
        text.push_str(&format!("\n\n{read}"));
        text
    }
}
