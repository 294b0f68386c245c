//! `git.status`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::ReadSpan;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError, visible_line};

use super::Mode;

/// Most files listed.
const FILES_MAX: usize = 2000;

/// Looks into the submodules: prints the path of each, relative to the workspace, and what is changed in it.
///
/// Not by `git status` of the repository around them, which would run the drivers that a submodule's own configuration
/// defines. Each submodule is asked by itself, after its drivers were blanked; the settings of fixed names are overridden by
/// the environment there, too.
const SUBMODULES: &str = r#"
look_into() { # at the folder $1
    local record modified= untracked=
    cd -- "$1" && blank_drivers || { printf x; return; }
    # An empty or broken .git would lead git to the repository around it.
    [ "$(git rev-parse --show-prefix 2>/dev/null; echo $?)" = $'\n0' ] || { printf x; return; }
    while IFS= read -r -d '' record; do
        case "$record" in '? '*) untracked=u ;; *) modified=m ;; esac
    done < <(git status --porcelain=v2 -z --untracked-files=normal --no-renames --ignore-submodules=dirty)
    wait "$!" || { printf x; return; }
    printf '%s%s' "$modified" "$untracked"
}
git rev-parse --git-dir >/dev/null || exit
todo=(.) n=0 looked=0
while [ "$n" -lt "${#todo[@]}" ]; do
    at=${todo[n]}
    n=$((n + 1))
    while IFS= read -r -d '' entry; do
        inner=$at/${entry#*$'\t'}
        inner=${inner#./}
        [ -e "$inner/.git" ] || continue
        [ "$looked" -lt 100 ] || exit 0
        looked=$((looked + 1))
        todo+=("$inner")
        printf '%s\0%s\0' "$inner" "$(look_into "$inner" 2>/dev/null)"
    done < <(git -C "$at" ls-files --stage -z 2>/dev/null | grep -za '^160000 ')
done
printf '\0all\0'
"#;

pub(crate) struct Status;

/// Shows the repository's state: branch, and which files are changed, staged, untracked or in conflict. Submodules are listed
/// if files in them are changed or untracked; a person commits those.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

#[derive(Serialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Null when no branch is checked out.
    branch: Option<String>,
    /// Null before the first commit.
    commit: Option<String>,
    upstream: Option<String>,
    ahead: Option<u64>,
    behind: Option<u64>,
    clean: bool,
    files: Vec<File>,
    /// Submodules, at any depth, with changes that are not committed in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    submodules: Vec<Submodule>,
    /// There are more changed files than are listed, or more submodules than are looked at.
    truncated: bool,
}

#[derive(Serialize, JsonSchema, Clone)]
struct Submodule {
    path: String,
    /// `modified content`, `untracked content`, or `not readable`.
    changes: Vec<String>,
}

#[derive(Serialize, JsonSchema, Clone)]
#[serde(rename_all = "camelCase")]
struct File {
    path: String,
    /// The path before a rename.
    from: Option<String>,
    /// Git's letter for the staged change: M, A, D, R, C, T, U, or `.` for none; `?` for untracked.
    staged: String,
    /// Git's letter for the change that is not staged.
    unstaged: String,
}

impl Tool for Status {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.status";
    const TITLE: &'static str = "Repository status";
    const FACTS: Facts = Facts::READS_REPOSITORY;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a workspace without a repository",
            arguments: json!({}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::NotFound),
        }]
    }

    fn render(&self, output: &Output) -> String {
        let branch = output.branch.as_deref().unwrap_or("(no branch)");
        let mut head = format!("on {branch}");
        if output.commit.is_none() {
            head.push_str(", no commits yet");
        }
        if let Some(upstream) = &output.upstream {
            let (ahead, behind) = (output.ahead.unwrap_or(0), output.behind.unwrap_or(0));
            head.push_str(&format!(", {ahead} ahead of and {behind} behind {upstream}"));
        }
        if output.clean {
            return format!("{head}\nnothing changed");
        }
        let submodules =
            output.submodules.iter().map(|s| format!("submodule {} ({})", visible_line(&s.path), s.changes.join(", ")));
        let lines = output.files.iter().map(|file| {
            let from = file.from.as_ref().map(|from| format!("{} -> ", visible_line(from))).unwrap_or_default();
            format!("{}{} {from}{}", file.staged, file.unstaged, visible_line(&file.path))
        });
        let mut text = format!("{head}\n{}", lines.chain(submodules).collect::<Vec<_>>().join("\n"));
        if output.truncated {
            text.push_str("\n[more is changed than is listed]");
        }
        text
    }

    async fn run(&self, ctx: &Ctx<'_>, _: Input) -> Result<Output, ToolError> {
        let options = ["--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty"];
        let arguments: Vec<&str> = BY_SIZE_AND_TIME.into_iter().chain(["status"]).chain(options).collect();
        let result = super::read(ctx, &arguments).await?;
        if result.exit_code != 0 {
            return Err(super::refused("git status failed", &result));
        }
        let mut output = parse(&result.stdout.text, result.stdout.truncated);
        let one = ReadSpan { start: 0, bytes_max: 1 };
        if ctx.workspace.read(&super::path(".gitmodules")?, one).await.is_ok() {
            let result = super::run(ctx, Mode::Read, SUBMODULES, &[], "", &[]).await?;
            add_submodules(&result.stdout.text, &mut output);
        }
        Ok(output)
    }
}

/// A file that has the size and the time that the index has of it is unchanged. Where the host is root, all files belong to another
/// user in the fence than the index says, and git would read each of them anew. What a commit takes is found out without this.
const BY_SIZE_AND_TIME: [&str; 4] = ["-c", "core.checkStat=minimal", "-c", "core.trustctime=false"];

/// Reads what [`SUBMODULES`] printed; the last pair says that none was left out.
fn add_submodules(text: &str, output: &mut Output) {
    let said: Vec<&str> = text.split('\0').collect();
    output.truncated |= !text.ends_with("\0all\0");
    for pair in said.chunks_exact(2).filter(|pair| !pair[0].is_empty()) {
        let letters = [('m', "modified content"), ('u', "untracked content"), ('x', "not readable")];
        let changes = letters.iter().filter(|(letter, _)| pair[1].contains(*letter));
        let changes: Vec<String> = changes.map(|(_, change)| (*change).to_owned()).collect();
        if !changes.is_empty() {
            output.submodules.push(Submodule { path: pair[0].to_owned(), changes });
        }
    }
    output.clean &= output.submodules.is_empty() && !output.truncated;
}

/// Reads porcelain v2 with NUL between records (git-status(1)).
fn parse(text: &str, cut: bool) -> Output {
    let mut output = Output::default();
    let mut records = text.split('\0').filter(|record| !record.is_empty());
    while let Some(record) = records.next() {
        if let Some(header) = record.strip_prefix("# ") {
            read_header(header, &mut output);
        } else if let Some(file) = read_file(record, &mut records) {
            output.files.push(file);
        }
    }
    output.clean = output.files.is_empty() && !cut;
    output.truncated = cut || output.files.len() > FILES_MAX;
    output.files.truncate(FILES_MAX);
    output
}

fn read_header(header: &str, output: &mut Output) {
    match header.split_once(' ') {
        Some(("branch.oid", oid)) if oid != "(initial)" => output.commit = Some(oid.to_owned()),
        Some(("branch.head", head)) if head != "(detached)" => output.branch = Some(head.to_owned()),
        Some(("branch.upstream", upstream)) => output.upstream = Some(upstream.to_owned()),
        Some(("branch.ab", counts)) => {
            let mut counts = counts.split(' ').map(|count| count.trim_start_matches(['+', '-']).parse().ok());
            output.ahead = counts.next().flatten();
            output.behind = counts.next().flatten();
        }
        _ => {}
    }
}

fn read_file<'t>(record: &'t str, records: &mut impl Iterator<Item = &'t str>) -> Option<File> {
    let (kind, rest) = record.split_once(' ')?;
    // Fields before the path: ordinary, renamed, unmerged (git-status(1), "Changed Tracked Entries").
    let fields = match kind {
        "1" => 7,
        "2" => 8,
        "u" => 9,
        "?" => {
            return Some(File { path: rest.to_owned(), from: None, staged: "?".to_owned(), unstaged: "?".to_owned() });
        }
        _ => return None,
    };
    let mut parts = rest.splitn(fields + 1, ' ');
    let letters = parts.next()?;
    let path = parts.nth(fields - 1)?;
    let from = if kind == "2" { records.next().map(str::to_owned) } else { None };
    Some(File {
        path: path.to_owned(),
        from,
        staged: letters.get(..1)?.to_owned(),
        unstaged: letters.get(1..2)?.to_owned(),
    })
}
