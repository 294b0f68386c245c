//! What is wrong with a configuration or a set of tools. The operator reads these, when the host starts.

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
    #[error("profile `{profile}` extends `{base}`, {problem}")]
    Extends { profile: String, base: String, problem: &'static str },
    #[error("profile `{profile}` names the tool `{tool}`, which does not exist{hint}")]
    UnknownTool { profile: String, tool: String, hint: String },
    #[error("rule {rule} of `{profile}`: {problem}")]
    Rule { profile: String, rule: usize, problem: String },
    #[error("profile `{profile}`: {problem}")]
    Fence { profile: String, problem: String },
    #[error("there is no profile `{name}`; there are {known}")]
    UnknownProfile { name: String, known: String },
    #[error("toolhost.toml of the project may only tighten: {0}")]
    Loosens(String),
}
