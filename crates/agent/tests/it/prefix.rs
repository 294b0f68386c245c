//! How many tokens each layer has, and how much of a prompt is the same bytes from one session to the next: what a
//! provider's cache of prompts can keep.

use serde_json::json;
use toolhost_agent::budget::Counter;
use toolhost_agent::persona::workspace_profile;
use toolhost_agent::prompt::{
    BuilderInput, ComposeInput, LayerId, ReplyLimits, Turn, WorkspaceContext, WorkspaceInput, WritePolicy,
    compose_messages, compose_system_instruction,
};
use toolhost_builder::Package;
use toolhost_builder::domain::resolve_domain_profile;
use toolhost_builder::envelope::{Mode, Request, Scope, TargetType, build_initial_context_envelope};

use crate::grown::{self, Size};
use crate::sample;

const KINDS: [TargetType; 4] = [TargetType::Workflow, TargetType::Step, TargetType::Agent, TargetType::Asset];
const MODES: [Mode; 2] = [Mode::Create, Mode::Optimize];
const SMALL: Size = Size { steps: 12, agents: 4, assets: 6 };
const BIG: Size = Size { steps: 300, agents: 40, assets: 200 };
/// In every text of the packages that are made here, and in no text of ours.
const WORD: &str = "Qzx";

const LIMITS: Option<ReplyLimits> = Some(ReplyLimits { replies: 8, per_repair: 3, tokens: 16_384 });

const TOOLS: [&str; 10] = [
    "builder_context_get",
    "builder_workflow_read",
    "builder_step_read",
    "builder_agent_read",
    "builder_asset_read",
    "builder_refs_find",
    "builder_schema_read",
    "builder_change_stage",
    "builder_change_validate",
    "builder_change_discard",
];

/// A package, and the ids of one object of each kind.
struct Known {
    package: Package,
    ids: [String; 4],
}

fn sample() -> Known {
    Known { package: Package::read(sample::files()), ids: sample::TARGETS.map(|(_, id)| id.to_owned()) }
}

fn made(word: &str, size: Size) -> Known {
    Known { package: grown::package(word, size), ids: grown::targets(word, size) }
}

fn input(known: &Known, at: usize, mode: Mode, session: &str) -> ComposeInput {
    let id = match mode {
        Mode::Optimize => known.ids[at].as_str(),
        Mode::Create => ["new", "new", "new", "assets/new.md"][at],
    };
    let request = Request {
        package: &known.package,
        target_type: KINDS[at],
        target_id: id,
        mode,
        workflow_id: None,
        tools: &TOOLS,
        scope: Scope { session_id: Some(session), user_id: Some(1), project_id: Some(1) },
    };
    ComposeInput::Builder(BuilderInput {
        entrypoint: KINDS[at],
        target_type: KINDS[at],
        mode,
        domain_profile: resolve_domain_profile(&known.package, None).unwrap(),
        context_envelope: build_initial_context_envelope(&request).unwrap(),
        write_policy: WritePolicy,
        reply_limits: LIMITS,
    })
}

fn workspace(project: &str) -> ComposeInput {
    let context = json!({
        "project": project, "profile": "developer",
        "tools": [{ "name": "file_read", "effect": "reads" }, { "name": "file_edit", "effect": "writes" }],
    });
    let context: WorkspaceContext = serde_json::from_value(context).unwrap();
    ComposeInput::Workspace(WorkspaceInput {
        domain_profile: workspace_profile(project, None),
        context: Box::new(context),
        write_policy: WritePolicy,
        reply_limits: LIMITS,
    })
}

/// The two blocks of instructions: layers 0A to 4, and 5 and 6.
fn blocks(input: &ComposeInput) -> [String; 2] {
    blocks_after(input, 0)
}

/// The same after so many turns.
fn blocks_after(input: &ComposeInput, turns: usize) -> [String; 2] {
    let turn = |n| Turn { user: format!("question {n}"), assistant: format!("answer {n}") };
    let prior: Vec<Turn> = (0..turns).map(turn).collect();
    let composed = compose_messages(input, &format!("Request {turns}."), &prior).unwrap();
    let texts: Vec<String> = composed.system.into_iter().map(|block| block.text).collect();
    texts.try_into().unwrap()
}

fn tokens(input: &ComposeInput) -> String {
    let counter = Counter::for_model("gpt-4o");
    let layers = compose_system_instruction(input).unwrap();
    let count = |id: LayerId| {
        let layer = layers.iter().find(|layer| layer.layer_id == id).unwrap();
        counter.count(&layer.render())
    };
    let each: Vec<u64> = LayerId::ALL.into_iter().map(count).collect();
    let stable: u64 = each[..6].iter().sum();
    let cells: Vec<String> = each.iter().chain([&stable, &each.iter().sum()]).map(|n| format!("{n:>6}")).collect();
    cells.concat()
}

/// Bytes that all texts begin with.
fn shared<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    let mut texts = texts.into_iter();
    let first = texts.next().unwrap().as_bytes();
    texts.fold(first.len(), |shared, text| {
        first[..shared].iter().zip(text.as_bytes()).take_while(|(one, other)| one == other).count()
    })
}

/// Of the shortest text and of the longest, in tenths of a hundredth.
fn share(texts: &[String]) -> String {
    let lengths = texts.iter().map(String::len);
    let (shortest, longest) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
    let of = |length: usize| {
        let tenths = shared(texts) * 1_000 / length;
        format!("{:>8}.{} %", tenths / 10, tenths % 10)
    };
    format!("{}{}", of(shortest), of(longest))
}

fn named(at: usize, mode: Mode) -> String {
    format!("{} {}", KINDS[at].as_str(), mode.as_str())
}

fn entries() -> impl Iterator<Item = (usize, Mode)> {
    (0..KINDS.len()).flat_map(|at| MODES.map(|mode| (at, mode)))
}

/// The packages of one project, as it imports one after the other.
fn packages() -> [Known; 3] {
    [sample(), made(WORD, SMALL), made("Claims", BIG)]
}

/// Rules: 001.12.
#[test]
fn every_package_has_the_same_layers_0a_to_4_and_targets_share_most_of_them() {
    let packages = packages();
    let mut all = Vec::new();
    for (at, mode) in entries() {
        let stable: Vec<String> =
            packages.iter().map(|known| blocks(&input(known, at, mode, "as_1"))[0].clone()).collect();
        assert!(stable.windows(2).all(|two| two[0] == two[1]), "{}", named(at, mode));
        all.extend(stable);
    }
    assert_eq!(blocks(&workspace("shop"))[0], blocks(&workspace("mill"))[0]);
    // What the layers of any two sessions on packages begin with ends where they are told where the person is.
    let end = all[0].find("# Layer-3 ").unwrap();
    assert!(shared(&all) > end);
}

#[test]
fn two_sessions_on_one_object_have_the_same_bytes() {
    let known = sample();
    for (at, mode) in entries() {
        let [one, other] = ["as_1", "as_2"].map(|session| blocks(&input(&known, at, mode, session)));
        assert!(one == other, "{}", named(at, mode));
    }
}

/// Rules: 001.55, 001.64.
#[test]
fn what_a_prompt_costs_and_how_much_of_it_is_shared() {
    let packages = packages();
    let head: String = ["0A", "0B", "1", "2", "3", "4", "5", "6", "0A-4", "all"].map(|id| format!("{id:>6}")).concat();
    let mut told = format!("Tokens of each layer, as OpenAI's o200k counts them.\n\n{:<30}{head}\n", "");
    for (name, known) in [("sample", &packages[0]), ("300 steps", &packages[2])] {
        for (at, mode) in entries() {
            let row = format!("{name}: {}", named(at, mode));
            told.push_str(&format!("{row:<30}{}\n", tokens(&input(known, at, mode, "as_1"))));
        }
    }
    told.push_str(&format!("{:<30}{}\n\n", "workspace", tokens(&workspace("shop"))));
    let stable = |known: &Known, at, mode| blocks(&input(known, at, mode, "as_1"))[0].clone();
    told.push_str("Bytes at the beginning that are the same, of the shortest and of the longest of the texts.\n\n");
    let mut row = |what: &str, share: String| told.push_str(&format!("{what:<62}{share}\n"));
    let least = |texts: &mut dyn Iterator<Item = Vec<String>>| texts.map(|texts| share(&texts)).min().unwrap();
    let whole = |known, at, mode, session| blocks(&input(known, at, mode, session)).concat();
    let turns = &mut entries().map(|(at, mode)| {
        let input = input(&packages[0], at, mode, "as_1");
        [0, 1, 8].map(|turns| blocks_after(&input, turns).concat()).to_vec()
    });
    row("turns of one session, layers 0A to 6", least(turns));
    let sessions = &mut entries().map(|(at, mode)| ["as_1", "as_2"].map(|s| whole(&packages[0], at, mode, s)).to_vec());
    row("two sessions on one object, layers 0A to 6", least(sessions));
    let of_packages = &mut entries().map(|(at, mode)| packages.iter().map(|known| stable(known, at, mode)).collect());
    row("packages, the same target and mode, layers 0A to 4", least(of_packages));
    let of_modes = &mut (0..KINDS.len()).map(|at| MODES.map(|mode| stable(&packages[0], at, mode)).to_vec());
    row("modes, the same package and target, layers 0A to 4", least(of_modes));
    let targets: Vec<String> = entries().map(|(at, mode)| stable(&packages[0], at, mode)).collect();
    row("targets and modes, the same package, layers 0A to 4", share(&targets));
    let all: Vec<String> =
        packages.iter().flat_map(|known| entries().map(|(at, mode)| stable(known, at, mode))).collect();
    row("packages, targets and modes, layers 0A to 4", share(&all));
    let projects = ["shop", "mill"].map(|project| blocks(&workspace(project))[0].clone());
    row("workspaces of two projects, layers 0A to 4", share(&projects));
    insta::assert_snapshot!("tokens_and_shares", told);
}

/// Rules: 001.12.
#[test]
fn no_text_of_a_package_stands_outside_the_untrusted_block() {
    let known = made(WORD, SMALL);
    for (at, mode) in entries() {
        let text = blocks(&input(&known, at, mode, "as_1")).concat();
        let (before, rest) = text.split_once("<untrusted source=\"context envelope\" id=\"").unwrap();
        let (inside, after) = rest.split_once(&format!("</untrusted id=\"{}\">", &rest[..16])).unwrap();
        assert!(inside.contains(WORD), "{}", named(at, mode));
        for outside in [before, after] {
            let found = outside.lines().find(|line| line.contains(WORD));
            assert_eq!(found, None, "{}", named(at, mode));
        }
    }
    let text = blocks(&workspace(WORD)).concat();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(WORD)).collect();
    assert!(matches!(lines[..], [project, _] if project == format!("Project: \"{WORD}\"")), "{lines:?}");
}
