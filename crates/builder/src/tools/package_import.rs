//! `builder.package.import`

use crate::limits::{FILE_BYTES_MAX, FILES_MAX, PACKAGE_BYTES_MAX, Size};
use crate::packages::ProjectPackage;
use crate::{Files, MANIFEST, Package};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::{EntryKind, ListQuery, ReadSpan, WsPath};
use toolhost_contract::{Callers, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::FOLDER;
use super::tool::{PackageAnswer, PackageTool};

pub(crate) struct PackageImport;

/// Imports a workflow package from a folder of the workspace into the project. Only an owner of the project may, and only a
/// person.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The folder that `bmad.json` is in.
    path: String,
    /// Put it in the place of the package that is there.
    #[serde(default)]
    replace: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    files: usize,
    workflows: usize,
    agents: usize,
    assets: usize,
    /// The number of this change in the package's history; none if nothing is different.
    moment: Option<i64>,
    warnings: Vec<String>,
}

impl PackageAnswer for Output {}

impl PackageTool for PackageImport {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "builder.package.import";
    const TITLE: &'static str = "Import a workflow package";
    const FACTS: Facts = Facts { callers: Callers::Owners, paths: &["path"], ..Facts::WRITES_RECORDS };

    fn examples(&self) -> Vec<Example> {
        vec![
            FOLDER.example(
                "from a folder",
                json!({"path": "pkg"}),
                Expect::Data(&[("/workflows", "1"), ("/agents", "1"), ("/assets", "1"), ("/moment", "1")]),
            ),
            FOLDER.example("a folder without a package", json!({"path": "."}), Expect::Fails(ErrorKind::Validation)),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Output, ToolError> {
        let folder = WsPath::parse(&input.path)?;
        let files = read_folder(ctx, &folder).await?;
        if !files.contains_key(MANIFEST) {
            return Err(ToolError::new(ErrorKind::Validation, format!("there is no `{MANIFEST}` in `{folder}`"))
                .hint("name the folder that it is in"));
        }
        let brought = package.import(&Package::read(files), input.replace, Size::default()).await?;
        Ok(Output {
            files: brought.files,
            workflows: brought.workflows,
            agents: brought.agents,
            assets: brought.assets,
            moment: brought.moment,
            warnings: brought.warnings.iter().map(ToString::to_string).collect(),
        })
    }
}

/// All regular files below a folder; links are not followed.
async fn read_folder(ctx: &Ctx<'_>, folder: &WsPath) -> Result<Files, ToolError> {
    let query = ListQuery {
        path: folder.clone(),
        pattern: None,
        depth_max: None,
        include_hidden: false,
        include_ignored: true,
        limit: FILES_MAX + 1,
        after: None,
    };
    let listing = ctx.workspace.list(query).await?;
    let mut files = Files::new();
    let mut bytes = 0;
    for entry in listing.entries.iter().filter(|entry| entry.kind == EntryKind::File) {
        let path = WsPath::parse(&entry.path)?;
        let content = ctx.workspace.read(&path, ReadSpan { start: 0, bytes_max: FILE_BYTES_MAX as u64 + 1 }).await?;
        bytes += content.bytes.len();
        if listing.more || listing.cut || bytes > PACKAGE_BYTES_MAX {
            let message = format!("`{folder}` has more than {FILES_MAX} files or {PACKAGE_BYTES_MAX} bytes");
            return Err(ToolError::new(ErrorKind::Limit, message).hint("name the folder of the package alone"));
        }
        let prefix = format!("{folder}/");
        let inside = entry.path.strip_prefix(&prefix).unwrap_or(&entry.path);
        files.insert(inside.to_owned(), content.bytes);
    }
    Ok(files)
}
