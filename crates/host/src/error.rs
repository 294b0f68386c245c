//! What is wrong with a configuration or a set of tools. The operator reads these, when the host starts.

use toolhost_contract::{visible, visible_line};

/// Characters of each line that the reader of TOML shows of a file.
const LINE_CHARS_MAX: usize = 200;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("two tools answer to `{0}`")]
    NameTaken(String),
    #[error("`{0}` is not a tool's name: `family.verb` or `family.object.verb`, lower case")]
    BadName(String),
    #[error("the schema of `{tool}` does not compile: {message}")]
    Schema { tool: String, message: String },
    #[error("the configuration is not valid TOML of the expected shape: {0}")]
    Toml(String),
    #[error("profile `{}` extends `{}`, {problem}", visible_line(profile), visible_line(base))]
    Extends { profile: String, base: String, problem: &'static str },
    #[error("profile `{}` names the tool `{}`, which does not exist{hint}", visible_line(profile), visible_line(tool))]
    UnknownTool { profile: String, tool: String, hint: String },
    #[error("rule {rule} of `{}`: {}", visible_line(profile), visible_line(problem))]
    Rule { profile: String, rule: usize, problem: String },
    #[error("profile `{}`: {}", visible_line(profile), visible_line(problem))]
    Fence { profile: String, problem: String },
    #[error("there is no profile `{name}`; there are {known}")]
    UnknownProfile { name: String, known: String },
    #[error("toolhost.toml of the project may only tighten: {}", visible_line(.0))]
    Loosens(String),
}

impl Error {
    /// What the reader of TOML says of a file, whose lines it shows.
    pub(crate) fn toml(said: &str) -> Self {
        let cut = |line: &str| match line.char_indices().nth(LINE_CHARS_MAX) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line.to_owned(),
        };
        Self::Toml(visible(said).lines().map(cut).collect::<Vec<_>>().join("\n"))
    }
}
