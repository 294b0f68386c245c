//! `git.show`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Tool, ToolError};

use super::Mode;

pub(crate) struct Show;

/// Shows a commit with its changes, or a file as it was in a commit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The commit or branch; the current commit by default.
    #[serde(default = "head")]
    revision: String,
    /// Show this file of the commit instead of its changes; from the workspace root.
    path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The commit.
    hash: String,
    /// The commit's author, date, message and changes as a unified diff; or the file's content.
    text: String,
    /// The middle was left out.
    truncated: bool,
}

fn head() -> String {
    "HEAD".to_owned()
}

/// `$1` is the revision, `$2` the path or empty.
const SHOW: &str = r#"
git rev-parse --git-dir >/dev/null || exit
commit=$(git rev-parse --quiet --verify --end-of-options "$1^{commit}") || { echo "there is no commit $1" >&2; exit 70; }
printf '%s\n' "$commit"
if [ -z "$2" ]; then
    exec git show --no-show-signature --no-ext-diff --no-textconv --no-color --no-notes --submodule=short \
        --diff-merges=first-parent --format='%an <%ae>%n%aI%n%n%B' "$commit" --
fi
object=$(git rev-parse --quiet --verify --end-of-options "$commit:$2") || { echo "$1 has no file $2" >&2; exit 70; }
[ "$(git cat-file -t "$object")" = blob ] || { echo "$2 is no file in $1" >&2; exit 70; }
exec git cat-file blob "$object"
"#;

impl Tool for Show {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.show";
    const TITLE: &'static str = "Show a commit or a file of it";
    const FACTS: Facts = Facts { paths: &["path"], ..Facts::READS_REPOSITORY };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[&[
        OtherName::argument("commit", "revision"),
        OtherName::argument("ref", "revision"),
        OtherName::argument("sha", "revision"),
        OtherName::argument("hash", "revision"),
        OtherName::argument("object", "revision"),
        OtherName::argument("file_path", "path"),
        OtherName::argument("file", "path"),
    ]];

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a file as it was committed",
                arguments: json!({"path": "a.txt"}),
                files: &[("a.txt", "a\n")],
                before: &[
                    ("git.init", "{}"),
                    ("git.commit", r#"{"message": "first"}"#),
                    ("file.write", r#"{"path": "a.txt", "content": "b\n"}"#),
                ],
                expect: Expect::Data(&[("/text", r#""a\n""#)]),
            },
            Example {
                says: "an option is no revision",
                arguments: json!({"revision": "--output=/tmp/x"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        output.text.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let revision = super::name("revision", &input.revision)?;
        let path = input.path.as_deref().map(super::path).transpose()?;
        let path = path.as_ref().map_or("", |path| path.as_str());
        let result = super::run(ctx, Mode::Read, SHOW, &[&revision, path], "", &[]).await?;
        if result.exit_code != 0 {
            return Err(super::refused("it cannot be shown", &result));
        }
        let (hash, text) = result.stdout.text.split_once('\n').unwrap_or_default();
        Ok(Output { hash: hash.to_owned(), text: text.to_owned(), truncated: result.stdout.truncated })
    }
}
