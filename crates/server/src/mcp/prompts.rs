//! MCP prompts: what a person begins with in a client that offers them. What a prompt tells a model of is read through the gate, as a
//! call of the tool that tells it.

use rmcp::ErrorData;
use rmcp::model::{Prompt, PromptArgument};
use serde_json::{Map, Value};

/// Longest value of an argument.
const VALUE_CHARS_MAX: usize = 4000;

/// A prompt.
pub struct PromptTemplate {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub arguments: &'static [ArgumentOfPrompt],
    /// The tools without which it is of no use.
    pub needs: &'static [&'static str],
    /// What the model is told first, with the names of tools between backticks. A sentence that names a tool which the profile does not
    /// have is left out.
    pub says: &'static [&'static str],
    /// The tool whose answer it is told then.
    pub reads: &'static str,
    /// Arguments that this tool is always given.
    pub given: &'static [(&'static str, &'static str)],
}

/// An argument of a prompt.
pub struct ArgumentOfPrompt {
    pub name: &'static str,
    pub description: &'static str,
    pub is_required: bool,
    /// The argument of the tool that it is handed to; `None`: the model is told it.
    pub to: Option<&'static str>,
}

/// What a person has given for the arguments of a prompt.
pub(crate) type Values = Vec<(&'static ArgumentOfPrompt, String)>;

/// Those of the built-in tools.
pub(super) const PROMPTS: [PromptTemplate; 3] = [
    PromptTemplate {
        name: "start-ticket",
        title: "Start a ticket",
        description: "Works on a ticket: reads it, makes a plan, does the work and moves the ticket on.",
        arguments: &[ArgumentOfPrompt {
            name: "ticketId",
            description: "The ticket, such as TKT-001",
            is_required: true,
            to: Some("ticketId"),
        }],
        needs: &["ticket.read"],
        says: &[
            "Work on the ticket below.",
            "Read first what of the workspace it is about.",
            "Say in a comment on the ticket how you will do it (`comment.post`) before you change anything.",
            "Check each of its criteria when you are done, and say what does not hold.",
            "Commit with the number of the ticket in the message (`git.commit`).",
            "Move the ticket on (`ticket.update_state`) where its criteria hold.",
        ],
        reads: "ticket.read",
        given: &[],
    },
    PromptTemplate {
        name: "review-change",
        title: "Review a change",
        description: "Reviews what has changed in the workspace since a commit or branch, or since the last commit.",
        arguments: &[ArgumentOfPrompt {
            name: "base",
            description: "The commit or branch to compare with",
            is_required: false,
            to: Some("base"),
        }],
        needs: &["git.diff"],
        says: &[
            "Review the change below.",
            "Read what stands around it (`file.read`) before you judge.",
            "Look for what is wrong, what can go wrong, what is not tested and what can be simpler.",
            "Name the file and the line of each finding, the worst first, and change nothing.",
        ],
        reads: "git.diff",
        given: &[],
    },
    PromptTemplate {
        name: "create-workflow",
        title: "Create a workflow",
        description: "Writes a workflow of the package as a change set, which a person applies.",
        arguments: &[ArgumentOfPrompt {
            name: "goal",
            description: "What the workflow should do",
            is_required: true,
            to: None,
        }],
        needs: &["builder.change.stage", "builder.schema.read"],
        says: &[
            "Write a workflow for the goal below.",
            "Look first at what the package has (`builder.context.get`).",
            "Stage it as one change set (`builder.change.stage`), validate it (`builder.change.validate`) and correct what the validation finds.",
            "A person applies it: say what it does and what they have to look at.",
        ],
        reads: "builder.schema.read",
        given: &[("topic", "set")],
    },
];

/// The prompts of a profile that has these tools.
pub(crate) fn all(prompts: &[PromptTemplate], has: impl Fn(&str) -> bool) -> Vec<Prompt> {
    let usable = prompts.iter().filter(|prompt| prompt.needs.iter().all(|tool| has(tool)));
    let argument = |argument: &ArgumentOfPrompt| {
        let ArgumentOfPrompt { name, description, is_required, .. } = argument;
        PromptArgument::new(*name).with_description(*description).with_required(*is_required)
    };
    usable
        .map(|prompt| {
            let arguments: Vec<_> = prompt.arguments.iter().map(argument).collect();
            let arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
            Prompt::new(prompt.name, Some(prompt.description), arguments).with_title(prompt.title)
        })
        .collect()
}

/// # Errors
/// There is none of this name.
pub(crate) fn get(prompts: &'static [PromptTemplate], name: &str) -> Result<&'static PromptTemplate, ErrorData> {
    prompts.iter().find(|prompt| prompt.name == name).ok_or_else(|| {
        let known: Vec<&str> = prompts.iter().map(|prompt| prompt.name).collect();
        ErrorData::invalid_params(format!("no prompt has this name; the prompts are {}", known.join(", ")), None)
    })
}

/// The tool, and its argument, that an argument of a prompt is handed to.
pub(crate) fn variable_of(
    prompts: &[PromptTemplate],
    name: &str,
    argument: &str,
) -> Option<(&'static str, &'static str)> {
    let prompt = prompts.iter().find(|prompt| prompt.name == name)?;
    Some((prompt.reads, prompt.arguments.iter().find(|known| known.name == argument)?.to?))
}

impl PromptTemplate {
    /// What the person has given.
    ///
    /// # Errors
    /// A value is no text, too long, or not there although it has to be.
    pub(crate) fn values(&'static self, given: Option<Map<String, Value>>) -> Result<Values, ErrorData> {
        let mut given = given.unwrap_or_default();
        let mut values = Values::new();
        for argument in self.arguments {
            let ArgumentOfPrompt { name, is_required, .. } = argument;
            let value = match given.remove(*name) {
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
                None if *is_required => {
                    return Err(ErrorData::invalid_params(format!("`{}` takes `{name}`", self.name), None));
                }
                value => values.extend(value.map(|value| (argument, value))),
            }
        }
        Ok(values)
    }

    /// The arguments of the call whose answer the model is told.
    pub(crate) fn arguments(&self, values: &Values) -> Value {
        let given = self.given.iter().map(|(name, value)| (*name, *value));
        let handed = values.iter().filter_map(|(argument, value)| Some((argument.to?, value.as_str())));
        given.chain(handed).map(|(name, value)| (name.to_owned(), Value::from(value))).collect::<Map<_, _>>().into()
    }

    /// All that the model is told. `called` answers how a tool is spelled, if the profile has it.
    pub(crate) fn text(&self, values: &Values, read: &str, called: impl Fn(&str) -> Option<String>) -> String {
        let sentences = self.says.iter().filter_map(|says| {
            let mut parts = says.split('`');
            let mut sentence = parts.next().unwrap_or_default().to_owned();
            while let (Some(tool), Some(rest)) = (parts.next(), parts.next()) {
                sentence.push_str(&format!("`{}`{rest}", called(tool)?));
            }
            Some(sentence)
        });
        let said = sentences.collect::<Vec<_>>().join(" ");
        let told = values.iter().filter(|(argument, _)| argument.to.is_none());
        let told = told.map(|(argument, value)| format!("The {}: {value}", argument.name));
        let parts = std::iter::once(said).chain(told).chain([read.to_owned()]);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::*;

    const fn argument(name: &'static str, is_required: bool, to: Option<&'static str>) -> ArgumentOfPrompt {
        ArgumentOfPrompt { name, description: "", is_required, to }
    }

    const PROMPTS: &[PromptTemplate] = &[PromptTemplate {
        name: "p",
        title: "P",
        description: "p",
        arguments: &[
            argument("one", true, Some("first")),
            argument("two", false, Some("second")),
            argument("goal", true, None),
        ],
        needs: &[],
        says: &["Begin."],
        reads: "a.read",
        given: &[("topic", "set")],
    }];

    fn given(values: Value) -> Result<Values, ErrorData> {
        PROMPTS[0].values(values.as_object().cloned())
    }

    #[test]
    fn each_argument_goes_to_the_tool_or_is_told() {
        let values = given(json!({ "one": "1", "goal": "peace" })).unwrap();
        assert_eq!(PROMPTS[0].arguments(&values), json!({ "topic": "set", "first": "1" }));
        assert_eq!(PROMPTS[0].text(&values, "read", |_| None), "Begin.\n\nThe goal: peace\n\nread");
        let both = given(json!({ "one": "1", "two": "2", "goal": "g" })).unwrap();
        assert_eq!(PROMPTS[0].arguments(&both), json!({ "topic": "set", "first": "1", "second": "2" }));
        for missing in [json!({ "one": "1" }), json!({ "goal": "g" }), json!({ "one": " ", "goal": "g" }), Value::Null]
        {
            assert!(given(missing.clone()).is_err(), "{missing}");
        }
        assert_eq!(variable_of(PROMPTS, "p", "two"), Some(("a.read", "second")));
        assert_eq!(variable_of(PROMPTS, "p", "goal"), None);
    }
}
