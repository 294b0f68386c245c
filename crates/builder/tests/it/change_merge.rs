//! Two edits of one object, brought together.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhost_builder::change::{Clash, ClashPlace, Merged, Part, Side, Snapshot, WrongSides, merge, merge_taking};

use crate::small;

fn of(part: Part, text: &str) -> Snapshot {
    Snapshot([(part, text.to_owned())].into())
}

fn merged(part: Part, base: &str, current: &str, ours: &str) -> Result<String, Vec<Clash>> {
    let [base, current, ours] = [base, current, ours].map(|text| of(part, text));
    match merge(Some(&base), Some(&current), Some(&ours)) {
        Merged::Clean(clean) => Ok(clean.unwrap().get(part).unwrap().to_owned()),
        Merged::Conflict(clashes) => Err(clashes),
    }
}

fn lines(base: &str, current: &str, ours: &str) -> Result<String, Vec<(usize, usize)>> {
    let by_word = |text: &str| {
        text.split(' ').filter(|word| !word.is_empty()).map(|word| format!("{word}\n")).collect::<String>()
    };
    let found = merged(Part::Document, &by_word(base), &by_word(current), &by_word(ours));
    found.map(|text| text.trim_end().replace('\n', " ")).map_err(|clashes| {
        let place = |clash: &Clash| match clash.place {
            ClashPlace::Lines { first, count } => (first, count),
            _ => (0, 0),
        };
        clashes.iter().map(place).collect()
    })
}

#[test]
fn texts_merge_where_a_line_is_between_them() {
    let check = |current: &str, ours: &str, expected: Result<&str, &[(usize, usize)]>| {
        let expected = expected.map(str::to_owned).map_err(<[_]>::to_vec);
        assert_eq!(lines("a b c d e", current, ours), expected, "{current} / {ours}");
        assert_eq!(lines("a b c d e", ours, current), expected, "{ours} / {current}");
    };
    check("A b c d e", "a b c d E", Ok("A b c d E"));
    check("A b c d e", "a b C d e", Ok("A b C d e"));
    check("x a b c d e", "a b c d e y", Ok("x a b c d e y"));
    check("b c d e", "a b c d", Ok("b c d"));
    // The same on both sides is done once.
    check("A b c d e", "A b c d E", Ok("A b c d E"));
    check("A b c d e", "a B c d e", Err(&[(1, 2)]));
    check("X b c d e", "Y b c d e", Err(&[(1, 1)]));
    check("a b x c d e", "a b y c d e", Err(&[(3, 0)]));
    check("a d e", "a b C d e", Err(&[(2, 2)]));
    check("X b c d Z", "Y b c d e", Err(&[(1, 1)]));
}

#[test]
fn two_that_want_the_same_json_do_not_clash_because_of_its_layout() {
    let (flat, tall) =
        (r#"{"id":"dev","persona":{"role":"x"}}"#, "{\n  \"id\": \"dev\",\n  \"persona\": { \"role\": \"x\" }\n}");
    for part in [Part::Definition, Part::Graph, Part::Entry, Part::Content] {
        let [current, ours, other] = [flat, tall, "{ \"id\": \"other\" }"].map(|text| of(part, text));
        // Both made it: there is nothing before.
        assert_eq!(merge(None, Some(&current), Some(&ours)), Merged::Clean(Some(current.clone())), "{part:?}");
        assert!(matches!(merge(None, Some(&current), Some(&other)), Merged::Conflict(_)), "{part:?}");
        assert_eq!(merged(part, "{}", flat, tall).unwrap(), flat, "{part:?}");
    }
    let [current, ours] = ["1.0", "1.00"].map(|text| of(Part::Content, text));
    assert!(matches!(merge(None, Some(&current), Some(&ours)), Merged::Conflict(_)), "a text is a text");
}

#[test]
fn a_clash_shows_all_three_texts() {
    let clashes = merged(Part::Document, "a\nb\n", "a\nc\n", "a\nd").unwrap_err();
    let shown = [&clashes[0].base, &clashes[0].current, &clashes[0].ours].map(|text| text.as_deref().unwrap());
    assert_eq!(shown, ["b\n", "c\n", "d"]);
}

#[test]
fn an_object_that_one_side_takes_out_and_the_other_changes_clashes() {
    let [a, b] = ["a", "b"].map(|text| of(Part::Content, text));
    assert_eq!(merge(Some(&a), None, Some(&a)), Merged::Clean(None));
    assert_eq!(merge(Some(&a), Some(&a), None), Merged::Clean(None));
    assert_eq!(merge(Some(&a), None, None), Merged::Clean(None));
    assert_eq!(merge(None, Some(&a), None), Merged::Clean(Some(a.clone())));
    for (base, current, ours) in [(Some(&a), Some(&b), None), (Some(&a), None, Some(&b)), (None, Some(&a), Some(&b))] {
        let Merged::Conflict(clashes) = merge(base, current, ours) else { unreachable!() };
        assert_eq!((clashes.len(), &clashes[0].place), (1, &ClashPlace::Whole));
    }
}

/// What a merge comes to once a side is taken at each of its clashes; how many there are of both.
fn taking(
    sides: [Option<&Snapshot>; 3],
    mut take: impl FnMut(&Clash) -> Side,
) -> Result<(Option<Snapshot>, usize), usize> {
    let [base, current, ours] = sides;
    let Merged::Conflict(clashes) = merge(base, current, ours) else { return Err(0) };
    let taken: Vec<Side> = clashes.iter().map(&mut take).collect();
    assert_eq!(merge_taking(base, current, ours, &taken[1..]), Err(WrongSides::Number));
    let found = merge_taking(base, current, ours, &taken).map_err(|_| clashes.len())?;
    // Merged with what is there now, the result changes nothing more.
    assert_eq!(merge(current, current, found.as_ref()), Merged::Clean(found.clone()));
    Ok((found, clashes.len()))
}

#[test]
fn a_side_is_taken_at_each_clash_and_the_rest_is_merged() {
    let by_word = |text: &str| of(Part::Document, &text.split(' ').map(|word| format!("{word}\n")).collect::<String>());
    let [base, current, ours] = ["a b c d e f", "X b c d Z F", "Y b C d W f"].map(by_word);
    let check = |first: Side, second: Side, expected: &str| {
        let mut sides = [first, second].into_iter();
        let (found, count) = taking([Some(&base), Some(&current), Some(&ours)], |_| sides.next().unwrap()).unwrap();
        assert_eq!((found, count), (Some(by_word(expected)), 2), "{expected}");
    };
    check(Side::Ours, Side::Ours, "Y b C d W f");
    check(Side::Theirs, Side::Theirs, "X b C d Z F");
    check(Side::Ours, Side::Theirs, "Y b C d Z F");
    check(Side::Theirs, Side::Ours, "X b C d W f");
}

#[test]
fn an_object_that_one_side_took_out_is_had_from_one_side_as_a_whole() {
    let part = |text: &str| Snapshot([(Part::Content, text.to_owned()), (Part::Entry, "{}".to_owned())].into());
    let [a, b] = ["a", "b"].map(part);
    for (sides, ours) in [
        ([Some(&a), None, Some(&b)], Some(b.clone())),
        ([Some(&a), Some(&b), None], None),
        ([None, Some(&a), Some(&b)], Some(b.clone())),
    ] {
        assert_eq!(taking(sides, |_| Side::Ours).unwrap().0, ours, "{sides:?}");
        assert_eq!(taking(sides, |_| Side::Theirs).unwrap().0, sides[1].cloned(), "{sides:?}");
    }
    let [old, new] = [part("a"), Snapshot([(Part::Content, "b".to_owned()), (Part::Entry, "[]".to_owned())].into())];
    let mut number = 0;
    let each_another = taking([Some(&old), None, Some(&new)], |_| {
        number += 1;
        if number == 1 { Side::Ours } else { Side::Theirs }
    });
    assert_eq!(each_another, Err(2));
}

#[test]
fn a_side_is_taken_of_values_of_a_graph() {
    let base = small::graph();
    let change = |title: &str, other: &str| {
        let mut graph = base.clone();
        graph["nodes"][1]["title"] = json!(title);
        graph["nodes"][0]["description"] = json!(other);
        if title == "B" {
            list(&mut graph, "edges").remove(2);
        } else {
            graph["edges"][2]["label"] = json!("kept");
        }
        of(Part::Graph, &format!("{graph:#}"))
    };
    let (base, current, ours) = (of(Part::Graph, &format!("{base:#}")), change("A", "one"), change("B", "two"));
    for side in [Side::Ours, Side::Theirs] {
        let (found, count) = taking([Some(&base), Some(&current), Some(&ours)], |_| side).unwrap();
        let wanted = if side == Side::Ours { &ours } else { &current };
        let parse = |side: &Snapshot| serde_json::from_str::<Value>(side.get(Part::Graph).unwrap()).unwrap();
        assert_eq!((parse(&found.unwrap()), count), (parse(wanted), 3));
    }
}

const STEP: &str = "---\nschemaVersion: \"1.1\"\nnodeId: plan\n# Shown to people.\ntitle: Plan\nagentId: scout\ninputs:\n  - brief\n\
                    variables:\n- name: a\n  about: x\n  value: 1\n- name: b\n  value: 2\ntransitions:\n  - to: x\n    label: one\n  \
                    - to: y\n    label: two\nnote: |\n  long\n\n  text\nstate:\n  # the first\n  one: 1\n  two: 2\n---\n\nBody.\n";

/// Two edits of the front matter of a step, each as what is to stand in the place of what.
fn fronts(current: (&str, &str), ours: (&str, &str)) -> Option<String> {
    let edit = |(from, to): (&str, &str)| {
        assert_eq!(STEP.matches(from).count(), 1, "{from}");
        STEP.replacen(from, to, 1)
    };
    let (there, here) = (edit(current), edit(ours));
    let found = merged(Part::Document, STEP, &there, &here).ok();
    assert_eq!(found.is_some(), merged(Part::Document, STEP, &here, &there).is_ok());
    found
}

#[test]
fn fields_of_front_matter_merge_though_their_lines_touch() {
    let check = |current: (&str, &str), ours: (&str, &str)| {
        let found = fronts(current, ours);
        let expected = STEP.replacen(current.0, current.1, 1).replacen(ours.0, ours.1, 1);
        assert_eq!(found.as_deref(), Some(expected.as_str()), "{current:?} {ours:?}");
    };
    check(("title: Plan", "title: Search"), ("agentId: scout", "agentId: lead"));
    check(("nodeId: plan\n", "nodeId: other\n"), ("# Shown to people.\ntitle: Plan\n", ""));
    check(("  value: 1\n", "  value: 7\n"), ("name: b\n  value: 2", "name: b\n  value: 3"));
    check(("about: x\n", "about: y\n"), ("value: 1\n", "value: 7\n"));
    check(
        ("  - brief\n", "  - brief\n  - plan\n"),
        ("variables:\n- name: a\n", "variables:\n- name: a\n  is_new: true\n"),
    );
    check(
        ("    label: one\n", "    label: first\n"),
        ("  - to: y\n    label: two\n", "  - to: y\n    label: two\n    isDefault: true\n"),
    );
    check(("  long\n", "  longer\n"), ("    label: two\n", "    label: two\n    isDefault: true\n"));
    check(("  one: 1\n", "  one: 7\n"), ("  two: 2\n", "  two: 8\n"));
    check(("  one: 1\n", "  one: 7\n"), ("  two: 2\n", ""));
}

#[test]
fn one_field_of_front_matter_that_both_changed_clashes() {
    assert_eq!(fronts(("title: Plan", "title: A"), ("title: Plan", "title: B")), None);
    assert_eq!(fronts(("  value: 1\n", "  value: 7\n"), ("  value: 1\n", "  value: 8\n")), None);
    assert_eq!(fronts(("# Shown to people.\ntitle: Plan\n", ""), ("title: Plan", "title: B")), None);
    assert_eq!(fronts(("  long\n\n  text", "  a\n\n  text"), ("  long\n\n  text", "  b")), None);
    // Where the bodies clash, merging the fields does not help.
    let [there, here] = ["A", "B"].map(|body| STEP.replacen("Body.", body, 1).replacen("Plan", body, 1));
    assert!(merged(Part::Document, STEP, &there, &here).is_err());
    // What an alias stands for changes with it.
    let [base, there, here] = ["1\nb: *x", "2\nb: *x", "1\nb: [*x]"].map(|text| format!("---\na: &x {text}\n---\n"));
    assert!(merged(Part::Document, &base, &there, &here).is_err());
    // A list in one line is one field.
    assert_eq!(fronts(("inputs:\n  - brief\n", "inputs: [a]\n"), ("inputs:\n  - brief\n", "inputs: [b]\n")), None);
}

/// Merges two edits of the small graph.
fn graphs(current: impl FnOnce(&mut Value), ours: impl FnOnce(&mut Value)) -> Result<Value, Vec<String>> {
    let base = small::graph();
    let (mut there, mut here) = (base.clone(), base.clone());
    current(&mut there);
    ours(&mut here);
    let found = merged(Part::Graph, &format!("{base:#}"), &format!("{there:#}"), &here.to_string());
    found.map(|text| serde_json::from_str(&text).unwrap()).map_err(|clashes| {
        let place = |clash: &Clash| match &clash.place {
            ClashPlace::Pointer { pointer } => pointer.clone(),
            _ => String::new(),
        };
        clashes.iter().map(place).collect()
    })
}

fn node(id: &str) -> Value {
    json!({ "id": id, "type": "step", "file": format!("steps/{id}.md") })
}

fn list<'a>(graph: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    graph[name].as_array_mut().unwrap()
}

#[test]
fn graphs_merge_by_node_and_edge() {
    let ids = |graph: &Value| -> Vec<String> {
        graph["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    };
    let merged = graphs(|g| list(g, "nodes").insert(1, node("x")), |g| list(g, "nodes").push(node("y"))).unwrap();
    assert_eq!(ids(&merged), ["begin", "x", "work", "choose", "end", "y"]);
    let merged = graphs(|g| g["nodes"][0]["title"] = json!("A"), |g| g["nodes"][0]["agentId"] = json!("b")).unwrap();
    assert_eq!((&merged["nodes"][0]["title"], &merged["nodes"][0]["agentId"]), (&json!("A"), &json!("b")));
    let merged = graphs(|g| list(g, "nodes").reverse(), |g| g["nodes"][1]["title"] = json!("T")).unwrap();
    assert_eq!(
        (ids(&merged), &merged["nodes"][2]["title"]),
        (["end", "choose", "work", "begin"].map(str::to_owned).to_vec(), &json!("T"))
    );
    let merged = graphs(|g| drop(list(g, "edges").remove(0)), |g| g["edges"][2]["conditionText"] = json!("c")).unwrap();
    assert_eq!((merged["edges"].as_array().unwrap().len(), &merged["edges"][1]["conditionText"]), (3, &json!("c")));
}

#[test]
fn graphs_clash_where_both_change_one_thing() {
    let clash = |current: fn(&mut Value), ours: fn(&mut Value)| graphs(current, ours).unwrap_err();
    assert_eq!(
        clash(|g| g["nodes"][1]["title"] = json!("A"), |g| g["nodes"][1]["title"] = json!("B")),
        ["/nodes/1/title"]
    );
    assert_eq!(clash(|g| drop(list(g, "nodes").remove(1)), |g| g["nodes"][1]["title"] = json!("B")), ["/nodes/1"]);
    assert_eq!(
        clash(|g| g["nodes"][0]["outputs"] = json!(["a"]), |g| g["nodes"][0]["outputs"] = json!(["b"])),
        ["/nodes/0/outputs"]
    );
    assert_eq!(clash(|g| g["entryNodeId"] = json!("work"), |g| g["entryNodeId"] = json!("end")), ["/entryNodeId"]);
    assert_eq!(clash(|g| list(g, "nodes").swap(0, 1), |g| list(g, "nodes").swap(2, 3)), ["/nodes"]);
    // Two labels for one edge are no two edges.
    assert_eq!(
        clash(|g| g["edges"][2]["label"] = json!("A"), |g| g["edges"][2]["label"] = json!("B")),
        ["/edges/2/label"]
    );
    let new = |label: &str| json!({ "id": "e9", "from": "begin", "to": "end", "label": label });
    let both = graphs(|g| list(g, "edges").push(new("A")), |g| list(g, "edges").push(new("B")));
    assert_eq!(both.unwrap_err(), ["/edges/4"]);
}

#[test]
fn a_label_and_a_condition_of_one_edge_merge_and_edges_that_were_numbered_anew_are_the_same() {
    let merged =
        graphs(|g| g["edges"][2]["label"] = json!("A"), |g| g["edges"][2]["conditionText"] = json!("c")).unwrap();
    assert_eq!((merged["edges"].as_array().unwrap().len(), &merged["edges"][2]["label"]), (4, &json!("A")));
    assert_eq!(merged["edges"][2]["conditionText"], "c");
    // As by who writes the graph anew.
    let renumber = |g: &mut Value| {
        for (at, edge) in list(g, "edges").iter_mut().rev().enumerate() {
            edge["id"] = json!(format!("e{}", at + 1));
        }
    };
    let merged = graphs(|g| g["edges"][2]["conditionText"] = json!("c"), renumber).unwrap();
    let edge = merged["edges"].as_array().unwrap().iter().find(|edge| edge["label"] == "good").unwrap();
    assert_eq!((merged["edges"].as_array().unwrap().len(), &edge["conditionText"]), (4, &json!("c")));
}

#[test]
fn json_that_is_broken_is_merged_as_text() {
    assert_eq!(merged(Part::Graph, "{\n1\n2\n3\n", "{\nx\n2\n3\n", "{\n1\n2\ny\n").unwrap(), "{\nx\n2\ny\n");
}

#[test]
fn long_texts_that_have_nothing_in_common_are_merged_in_time() {
    let long = |word: &str| (0..200_000).map(|n| format!("{word}{n}\n")).collect::<String>();
    assert_eq!(merged(Part::Content, &long("a"), &long("b"), &long("c")).unwrap_err().len(), 1);
}

fn document() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..5, 0..12)
}

fn text(lines: &[u8]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn one_edit_alone_is_what_comes_out(base in document(), other in document()) {
        let (base, other) = (of(Part::Content, &text(&base)), of(Part::Content, &text(&other)));
        let clean = Merged::Clean(Some(other.clone()));
        prop_assert_eq!(merge(Some(&base), Some(&base), Some(&other)), clean.clone());
        prop_assert_eq!(merge(Some(&base), Some(&other), Some(&base)), clean.clone());
        prop_assert_eq!(merge(Some(&base), Some(&other), Some(&other)), clean);
    }

    #[test]
    fn sides_may_change_places_and_no_line_is_lost(base in document(), current in document(), ours in document()) {
        // Lines of one side are known by their sign.
        let signed = |lines: &[u8], sign: &str| -> String {
            let line = |line: &u8| if *line < 3 { format!("{line}\n") } else { format!("{sign}{line}\n") };
            lines.iter().map(line).collect()
        };
        let (base, current, ours) = (text(&base), signed(&current, "c"), signed(&ours, "o"));
        let found = merged(Part::Content, &base, &current, &ours);
        match (found, merged(Part::Content, &base, &ours, &current)) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(&one, &other);
                for side in [&current, &ours] {
                    for line in side.lines().filter(|line| line.len() > 1) {
                        let count = |text: &str| text.lines().filter(|other| *other == line).count();
                        prop_assert_eq!(count(&one), count(side), "{}", line);
                    }
                }
            }
            (Err(one), Err(other)) => prop_assert_eq!(one.len(), other.len()),
            (one, other) => prop_assert!(false, "{one:?} {other:?}"),
        }
    }

    #[test]
    fn clashes_end_where_a_side_is_taken_and_nothing_else_changes(
        base in document(),
        current in document(),
        ours in document(),
        all_ours: bool,
    ) {
        let [base, current, ours] = [base, current, ours].map(|lines| of(Part::Content, &text(&lines)));
        let side = |ours: bool| if ours { Side::Ours } else { Side::Theirs };
        let one = taking([Some(&base), Some(&current), Some(&ours)], |_| side(all_ours));
        prop_assert!(one.is_ok() || one == Err(0), "{one:?}");
        let other = taking([Some(&base), Some(&ours), Some(&current)], |_| side(!all_ours));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn a_clean_merge_of_graphs_has_both_changes(
        first in 0usize..8,
        second in 0usize..8,
        one in "[a-z]{1,3}",
        other in "[A-Z]{1,3}",
    ) {
        let change = |graph: &mut Value, kind: usize, word: &str| {
            let pointer = match kind {
                0 => "/nodes/0/title",
                1 => "/nodes/1/title",
                2 => "/nodes/1/description",
                3 => "/edges/0/conditionText",
                4 => "/edges/3/conditionText",
                5 => "/entryNodeId",
                6 => {
                    list(graph, "nodes").push(node(word));
                    return None;
                }
                _ => {
                    list(graph, "edges").insert(0, json!({ "from": "begin", "to": "end", "label": word }));
                    return None;
                }
            };
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            let parent = if parent.is_empty() { graph } else { graph.pointer_mut(parent).unwrap() };
            parent[name] = json!(word);
            Some((pointer, word.to_owned()))
        };
        let (mut a, mut b) = (None, None);
        let found = graphs(|g| a = change(g, first, &one), |g| b = change(g, second, &other));
        match found {
            Ok(merged) => {
                let text = merged.to_string();
                for word in [&one, &other] {
                    prop_assert!(text.contains(&format!("\"{word}\"")), "{}", text);
                }
            }
            Err(_) => prop_assert!(first == second && first < 6),
        }
    }
}
