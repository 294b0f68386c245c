//! What the three systems before this one got wrong (see the seeds), each a promise here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_contract::{CallerKind, Outcome};
use toolhost_testkit::House;
use toolhost_testkit::engines::{engines, exported, furnish, next_door, refusal};

fn requirement(title: &str) -> Value {
    json!({ "title": title, "description": "", "priority": "high", "category": "functional", "acceptanceCriteria": ["x"] })
}

fn feature(name: &str, requirements: Value) -> Value {
    json!({ "name": name, "description": "", "requirementIds": requirements, "completionCriteria": [] })
}

fn component(features: Value) -> Value {
    json!({
        "name": "c", "componentType": "other", "responsibilities": ["x"], "technology": "", "relatedFeatures": features,
    })
}

fn task(title: &str, dependencies: Value) -> Value {
    json!({
        "title": title, "description": "", "featureId": "FEAT-001", "componentId": "COMP-001", "acceptanceCriteria": [],
        "dependencies": dependencies,
    })
}

/// A requirement, a feature that meets it, and a component.
async fn plan(house: &House) {
    house.data("requirement.create", requirement("one")).await;
    house.data("feature.add", feature("one", json!(["REQ-001"]))).await;
    house.data("component.add", component(json!(["FEAT-001"]))).await;
}

async fn as_person(house: &House, tool: &str, arguments: Value) -> Outcome {
    let mut call = house.request(tool, arguments);
    call.caller.kind = CallerKind::Person;
    house.run(call).await
}

fn texts<'a>(items: &'a Value, pointer: &str) -> Vec<&'a str> {
    items.as_array().unwrap().iter().map(|one| one.pointer(pointer).unwrap().as_str().unwrap()).collect()
}

/// The ids of what `memory.query` finds.
async fn found(house: &House, arguments: Value) -> Vec<String> {
    let answer = house.data("memory.query", arguments).await;
    texts(&answer["items"], "/id").into_iter().map(str::to_owned).collect()
}

/// Rules: 002.15, 002.16, 002.57.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_not_given_again_after_a_delete() {
    for engine in engines() {
        let house = engine.house().await;
        for title in ["one", "two", "three"] {
            house.data("requirement.create", requirement(title)).await;
        }
        for gone in ["REQ-002", "REQ-003"] {
            house.data("requirement.delete", json!({ "id": gone })).await;
        }
        assert_eq!(house.data("requirement.create", requirement("four")).await["id"], "REQ-004");
        let left = house.data("requirement.list", json!({})).await;
        assert_eq!(texts(&left["requirements"], "/id"), ["REQ-001", "REQ-004"]);
        // Iterations too, which share their ids with all that is in them.
        for number in 1..=3 {
            assert_eq!(
                house.data("iteration.create", json!({ "title": "x" })).await["id"],
                format!("ITER-{number:03}")
            );
        }
    }
}

/// Rules: 002.56.
#[tokio::test(flavor = "multi_thread")]
async fn two_who_write_one_requirement_at_once_lose_nothing() {
    const ROUNDS: i64 = 20;
    for engine in engines() {
        let house = Arc::new(engine.house().await);
        house.data("requirement.create", requirement("one")).await;
        // Each changes a field of its own, without a word about the version.
        let write = |field: &'static str| {
            let house = Arc::clone(&house);
            tokio::spawn(async move {
                for n in 1..=ROUNDS {
                    house.data("requirement.update", json!({ "id": "REQ-001", field: format!("{field} {n}") })).await;
                }
            })
        };
        let (one, two) = (write("title"), write("description"));
        one.await.unwrap();
        two.await.unwrap();
        let after = house.data("requirement.list", json!({})).await["requirements"][0].clone();
        assert_eq!((&after["title"], &after["description"]), (&json!("title 20"), &json!("description 20")), "{after}");
        assert_eq!(after["version"], 1 + 2 * ROUNDS, "each change is a version");
        // Who says which version was read is told that it is past; one of two wins.
        let race = |title: &'static str| {
            let house = Arc::clone(&house);
            let version = 1 + 2 * ROUNDS;
            tokio::spawn(async move {
                let arguments = json!({ "id": "REQ-001", "title": title, "expectedVersion": version });
                house.call("requirement.update", arguments).await.ok
            })
        };
        let (one, two) = (race("first"), race("second"));
        assert_ne!(one.await.unwrap(), two.await.unwrap(), "exactly one of two is told that it has changed");
    }
}

/// Rules: 002.56.
#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_cannot_be_saved_leaves_all_there_was() {
    for engine in engines() {
        let house = engine.house().await;
        furnish(&house, 1, house.project.id, "albatross").await;
        let before = exported(&house.store, house.project.id).await;
        for (tool, arguments) in [
            ("memory.save_insight", json!({ "stage": "s", "content": "bad \u{0}" })),
            ("memory.save_issue", json!({ "stage": "s", "content": "x".repeat(5 << 20) })),
            ("memory.save_learning", json!({ "content": "x", "iteration": 99 })),
            (
                "memory.promote_to_decision",
                json!({ "title": "x", "context": "", "decision": "d", "sourceId": "INS-099" }),
            ),
        ] {
            assert!(!house.call(tool, arguments).await.ok, "{tool}");
            assert!(exported(&house.store, house.project.id).await == before, "{tool} lost something");
        }
        assert_eq!(found(&house, json!({ "keywords": ["albatross"], "limit": 100 })).await.len(), 5);
    }
}

/// Rules: 002.37, 002.40, 002.41, 002.71.
#[tokio::test(flavor = "multi_thread")]
async fn an_insight_becomes_one_decision_and_is_named_by_it() {
    for engine in engines() {
        let house = engine.house().await;
        house.data("memory.save_insight", json!({ "stage": "design", "content": "SQLite is fast" })).await;
        let promote = |decision: &str| {
            house.call(
                "memory.promote_to_decision",
                json!({ "title": "Database", "context": "", "decision": decision, "sourceId": "INS-001" }),
            )
        };
        let first = promote("SQLite").await;
        assert_eq!((&first.data["id"], &first.data["sourceId"]), (&json!("DEC-001"), &json!("INS-001")), "{first:?}");
        let second = promote("really SQLite").await;
        assert_eq!(
            refusal(&second),
            ("AI_TOOL_EXECUTION_ERROR", "conflict", "DEC-001 has already been made of INS-001".to_owned())
        );
        // A pattern is something else.
        let pattern = |text: &str| json!({ "name": "p", "description": text, "sourceId": "INS-001" });
        house.data("memory.promote_to_pattern", pattern("one writer")).await;
        let second = house.call("memory.promote_to_pattern", pattern("one writer at a time")).await;
        assert_eq!(refusal(&second).2, "PAT-001 has already been made of INS-001");
        // What is saved again is not kept again, however it is written.
        let again = house.data("memory.save_insight", json!({ "stage": "x", "content": "sqlite IS  fast!" })).await;
        assert_eq!((&again["id"], &again["duplicate"]), (&json!("INS-001"), &json!(true)));
    }
}

/// Rules: 002.38, 002.70.
#[tokio::test(flavor = "multi_thread")]
async fn an_issue_can_be_resolved_once() {
    for engine in engines() {
        let house = engine.house().await;
        house.data("memory.save_issue", json!({ "stage": "check", "content": "the build is red" })).await;
        house.clock.advance(Duration::from_secs(60));
        let resolve = json!({ "id": "ISS-001", "resolution": "a missing file" });
        let done = house.data("memory.resolve_issue", resolve.clone()).await;
        assert_eq!((&done["resolved"], &done["resolution"]), (&json!(true), &json!("a missing file")));
        assert_eq!(done["resolvedAtMs"].as_i64().unwrap(), done["createdAtMs"].as_i64().unwrap() + 60_000);
        assert_eq!(
            refusal(&house.call("memory.resolve_issue", resolve).await).2,
            "ISS-001 is resolved already, not open"
        );
        assert_eq!(
            found(&house, json!({ "keywords": ["missing"] })).await,
            ["ISS-001"],
            "how it was resolved is found, too"
        );
    }
}

/// Rules: 002.36, 002.37, 002.38, 002.39, 002.69, 002.70.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_finds_every_kind_the_newest_first_and_each_once() {
    for engine in engines() {
        let house = engine.house().await;
        let decision = json!({ "title": "Storage", "context": "one machine", "decision": "keep ledgers in SQLite" });
        let pattern = json!({ "name": "p", "description": "append to ledgers only" });
        for (tool, arguments) in [
            ("memory.promote_to_decision", decision),
            ("memory.promote_to_pattern", pattern),
            ("memory.save_insight", json!({ "stage": "design", "content": "ledgers grow" })),
            ("memory.save_issue", json!({ "stage": "check", "content": "ledgers are slow" })),
            ("memory.save_learning", json!({ "content": "rotate ledgers" })),
        ] {
            house.data(tool, arguments).await;
            house.clock.advance(Duration::from_secs(3600));
        }
        let newest_first = ["LRN-001", "ISS-001", "INS-001", "PAT-001", "DEC-001"];
        let project = |more: Value| {
            let mut all = json!({ "scope": "project" });
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        assert_eq!(found(&house, project(json!({}))).await, newest_first);
        let mut by_word = found(&house, project(json!({ "keywords": ["ledgers"] }))).await;
        by_word.sort();
        let mut all = newest_first;
        all.sort_unstable();
        assert_eq!(by_word, all, "in the decision's text as well, each once");
        let mut several =
            found(&house, project(json!({ "keywords": ["ledgers", "ledger", "slow", "SQLite", "ledgers"] }))).await;
        several.sort();
        assert_eq!(several, all, "several words find nothing twice");
        assert_eq!(found(&house, project(json!({ "limit": 2 }))).await, newest_first[..2], "a limit keeps the newest");
        for (category, id) in [
            ("decisions", "DEC-001"),
            ("patterns", "PAT-001"),
            ("insights", "INS-001"),
            ("issues", "ISS-001"),
            ("learnings", "LRN-001"),
        ] {
            assert_eq!(found(&house, project(json!({ "category": category }))).await, [id]);
        }
        for n in 0..5 {
            house.data("memory.save_learning", json!({ "content": format!("zygote number {n}") })).await;
            house.clock.advance(Duration::from_secs(86_400));
        }
        let limited = found(&house, project(json!({ "keywords": ["zygote"], "limit": 2 }))).await;
        assert_eq!(limited, ["LRN-006", "LRN-005"], "of what fits alike, the newest are kept");
        assert_eq!(
            found(&house, json!({ "keywords": ["unheard-of"] })).await,
            Vec::<String>::new(),
            "insights are filtered, too"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_todo_list_can_be_asked_for() {
    for engine in engines() {
        let house = engine.house().await;
        let text = "# Todo List\n\nTODO, FIXME, TBD and PLACEHOLDER are words. NOT IMPLEMENTED as well.";
        for kind in ["idea", "prd", "design", "plan", "check_report", "delivery_report"] {
            house.data("artifact.save", json!({ "kind": kind, "content": text })).await;
            assert_eq!(house.data("artifact.load", json!({ "kind": kind })).await["content"], text);
        }
        let mut wanted = requirement("TODO: a todo list");
        wanted["description"] = json!("what is still TODO");
        house.data("requirement.create", wanted).await;
        assert_eq!(house.data("check.data_format", json!({ "dataType": "requirements" })).await["valid"], true);
        // The one before is kept.
        house.data("save_prd_doc", json!({ "content": "# Todo List, second" })).await;
        assert_eq!(house.data("artifact.load", json!({ "kind": "prd", "version": 1 })).await["content"], text);
    }
}

/// Rules: 002.19, 002.20, 002.61.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_does_not_go_from_anywhere_to_anywhere() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        house.data("create_task", task("one", json!([]))).await;
        let go = |to: &str| house.call("update_task_status", json!({ "id": "TASK-001", "newStatus": to }));
        for (to, message) in [
            ("completed", "TASK-001 cannot go from pending to completed: allowed is in_progress"),
            ("blocked", "TASK-001 cannot go from pending to blocked: allowed is in_progress"),
        ] {
            assert_eq!(refusal(&go(to).await).2, message);
        }
        assert!(go("in_progress").await.ok && go("completed").await.ok);
        let back = go("pending").await;
        assert_eq!(refusal(&back).2, "TASK-001 cannot go from completed to pending: completed is final");
        // A word that is none is refused, and does not become `pending`.
        for (tool, arguments) in [
            ("update_task_status", json!({ "id": "TASK-001", "newStatus": "done" })),
            ("update_feature_status", json!({ "id": "FEAT-001", "newStatus": "finished" })),
            ("get_implementation_plan", json!({ "statusFilter": "stuck" })),
        ] {
            let outcome = house.call(tool, arguments).await;
            assert_eq!(refusal(&outcome).1, "validation", "{tool}");
            assert!(outcome.text.contains("one of pending, in_progress, completed, blocked"), "{}", outcome.text);
        }
        assert_eq!(house.data("task.list", json!({})).await["items"][0]["status"], "completed");
        let go = |to: &str| house.call("update_feature_status", json!({ "id": "FEAT-001", "newStatus": to }));
        assert_eq!(
            refusal(&go("completed").await).2,
            "FEAT-001 cannot go from pending to completed: allowed is in_progress"
        );
        assert!(go("in_progress").await.ok && go("completed").await.ok);
        let back = go("pending").await;
        assert_eq!(refusal(&back).2, "FEAT-001 cannot go from completed to pending: allowed is in_progress");
        let reopened = go("in_progress").await;
        assert_eq!(refusal(&reopened).2, "FEAT-001 is completed: it is reopened only with a reason");
        assert!(reopened.error.unwrap().hint.unwrap().contains("`why`"));
        let reopen = json!({ "id": "FEAT-001", "newStatus": "in_progress", "why": "the form lost its focus" });
        let feature = house.data("feature.update_status", reopen).await;
        assert!(feature["completedAtMs"].is_null(), "what is open again was not completed: {feature}");
    }
}

/// Rules: 002.19, 002.22.
#[tokio::test(flavor = "multi_thread")]
async fn the_plan_shows_what_is_blocked() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        for title in ["one", "two"] {
            house.data("task.create", task(title, json!([]))).await;
        }
        for status in ["in_progress", "blocked"] {
            house.data("task.update_status", json!({ "id": "TASK-002", "newStatus": status })).await;
        }
        for (filter, ids) in [("blocked", vec!["TASK-002"]), ("pending", vec!["TASK-001"]), ("completed", vec![])] {
            let plan = house.data("get_plan", json!({ "statusFilter": filter })).await;
            assert_eq!(texts(&plan["tasks"], "/id"), ids, "{filter}");
        }
        assert_eq!(house.data("plan.get", json!({})).await["tasks"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_texts_with_something_else_in_it_is_refused() {
    for engine in engines() {
        let house = engine.house().await;
        for item in [json!(7), json!(null), json!({}), json!(["nested"]), json!(true)] {
            let mut arguments = requirement("one");
            arguments["acceptanceCriteria"] = json!(["fine", item]);
            let outcome = house.call("create_requirement", arguments).await;
            assert_eq!(refusal(&outcome).1, "validation", "{item}");
            assert!(outcome.text.contains("/acceptanceCriteria/1"), "{}", outcome.text);
        }
        for (field, word) in [("priority", "urgent"), ("category", "odd")] {
            let mut arguments = requirement("one");
            arguments[field] = json!(word);
            assert_eq!(refusal(&house.call("create_requirement", arguments).await).1, "validation", "and not `medium`");
        }
        assert_eq!(
            house.data("requirement.create", requirement("one")).await["id"],
            "REQ-001",
            "nothing was kept before"
        );
    }
}

/// Rules: 002.17, 002.21, 002.58, 002.59, 002.60.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_name_is_not_deleted_behind_their_back() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        house.data("task.create", task("one", json!([]))).await;
        house.data("milestone.add", json!({ "name": "m", "features": ["FEAT-001"] })).await;
        for (tool, id, by) in [
            ("requirement.delete", "REQ-001", "FEAT-001"),
            ("feature.delete", "FEAT-001", "COMP-001, MILE-001, TASK-001"),
            ("component.delete", "COMP-001", "TASK-001"),
        ] {
            let refused = house.call(tool, json!({ "id": id })).await;
            assert_eq!(refusal(&refused).2, format!("{id} is used by {by}"));
        }
        let gone = house.data("requirement.delete", json!({ "id": "REQ-001", "cascade": true })).await;
        assert_eq!(gone, json!({ "deleted": ["REQ-001"], "unlinked": ["FEAT-001"] }));
        let feature = house.data("feature.list", json!({})).await["items"][0].clone();
        assert_eq!(feature["requirementIds"], json!([]), "{feature}");
        let gone = house.data("feature.delete", json!({ "id": "FEAT-001", "cascade": true })).await;
        assert_eq!(gone, json!({ "deleted": ["FEAT-001", "TASK-001"], "unlinked": ["COMP-001", "MILE-001"] }));
        // References are asked for when they are made, too.
        let refused = house.call("feature.add", feature_of("REQ-001")).await;
        assert_eq!(refusal(&refused).2, "requirementIds: there is no requirement `REQ-001` in this project");
    }
}

fn feature_of(requirement: &str) -> Value {
    feature("late", json!([requirement]))
}

/// Rules: 002.32, 002.63.
#[tokio::test(flavor = "multi_thread")]
async fn a_circle_of_tasks_is_told_as_a_chain() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        for (title, on) in [("one", json!([])), ("two", json!(["TASK-001"])), ("three", json!(["TASK-002"]))] {
            house.data("task.create", task(title, on)).await;
        }
        let refused = house.call("task.update", json!({ "id": "TASK-001", "dependencies": ["TASK-003"] })).await;
        let chain = "TASK-001 → TASK-003 → TASK-002 → TASK-001";
        assert_eq!(refusal(&refused).2, format!("the dependencies would go in a circle: {chain}"));
        // One that an import has brought along is named by the check.
        let lines = exported(&house.store, house.project.id).await;
        let other = next_door(&house, "local").await;
        let circle = lines.iter().filter(|line| !line.contains("\"line\":\"history\"")).map(|line| {
            let of_first = line.contains("\"line\":\"record\"") && line.contains("\"id\":\"TASK-001\"");
            let to = "\"dependencies\":[\"TASK-003\"]";
            Ok(if of_first { line.replace("\"dependencies\":[]", to) } else { line.clone() })
        });
        let who = toolhost_store::Who { project_id: other, user_id: 1, name: "x".to_owned(), call_id: "c".to_owned() };
        toolhost_records::Records::new(house.store.database())
            .desk(who)
            .unwrap()
            .import(circle.collect::<Vec<_>>().into_iter(), toolhost_records::Extent::Partial)
            .await
            .unwrap();
        let mut call = house.request("check_task_dependencies", json!({}));
        call.scope.project_id = other;
        let checked = house.run(call).await.data;
        assert_eq!((&checked["valid"], &checked["cycles"]), (&json!(false), &json!([chain])), "{checked}");
        let fine = house.data("check.task_dependencies", json!({})).await;
        assert_eq!((&fine["valid"], &fine["order"]), (&json!(true), &json!(["TASK-001", "TASK-002", "TASK-003"])));
        assert_eq!(fine["criticalPath"], fine["order"]);
    }
}

/// Rules: 002.31.
#[tokio::test(flavor = "multi_thread")]
async fn coverage_is_asked_for_in_both_directions() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        house.data("task.create", task("one", json!([]))).await;
        let covered = house.data("check_feature_coverage", json!({})).await;
        assert_eq!(
            (&covered["covered"], &covered["requirements"], &covered["features"]),
            (&json!(true), &json!(1), &json!(1))
        );
        house.data("requirement.create", requirement("nobody's")).await;
        house.data("feature.add", feature("for nothing", json!([]))).await;
        let checked = house.data("check.feature_coverage", json!({})).await;
        assert_eq!(checked["covered"], false);
        for (field, id) in [
            ("requirementsWithoutFeatures", "REQ-002"),
            ("featuresWithoutRequirements", "FEAT-002"),
            ("featuresWithoutTasks", "FEAT-002"),
            ("featuresWithoutComponents", "FEAT-002"),
        ] {
            assert_eq!(texts(&checked[field], "/id"), [id], "{field}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_of_another_project_is_out_of_reach() {
    for engine in engines() {
        let house = engine.house().await;
        let other = next_door(&house, "olga").await;
        let olga = house.store.people().user("olga").await.unwrap().unwrap();
        let mut call = house.request("ticket.create", json!({ "title": "theirs" }));
        (call.scope.user_id, call.scope.project_id) = (olga, other);
        assert_eq!(house.run(call).await.data["id"], "TKT-001");
        let before = exported(&house.store, other).await;
        for (tool, arguments) in [
            ("ticket.read", json!({ "ticketId": "TKT-001" })),
            ("ticket.update_state", json!({ "ticketId": "TKT-001", "newState": "research" })),
            ("comment.post", json!({ "ticketId": "TKT-001", "content": "hello" })),
        ] {
            assert_eq!(refusal(&house.call(tool, arguments).await).2, "there is no ticket `TKT-001` in this project");
        }
        assert_eq!(exported(&house.store, other).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_loses_most_of_its_text_only_by_a_person() {
    for engine in engines() {
        let house = engine.house().await;
        house.data("ticket.create", json!({ "title": "x" })).await;
        let save = |length: usize| json!({ "ticketId": "TKT-001", "type": "implementation_plan", "content": "ü".repeat(length) });
        house.data("save_document", save(1000)).await;
        let refused = house.call("ticket.save_document", save(299)).await;
        let message = "the new text has 299 characters where the present one has 1000: it would lose most of it";
        assert_eq!((refusal(&refused).1, refusal(&refused).2), ("conflict", message.to_owned()));
        assert_eq!(house.data("ticket.save_document", save(300)).await["version"], 2, "as much as is allowed");
        assert_eq!(refusal(&house.call("ticket.save_document", save(89)).await).1, "conflict");
        let by_person = as_person(&house, "ticket.save_document", save(1)).await;
        assert_eq!((by_person.ok, &by_person.data["version"]), (true, &json!(3)), "{by_person:?}");
        let first = json!({ "ticketId": "TKT-001", "type": "implementation_plan", "version": 1 });
        let first = house.data("ticket.read_document", first).await;
        assert_eq!(first["content"].as_str().unwrap().chars().count(), 1000, "nothing is lost");
    }
}

/// Rules: 002.46.
#[tokio::test(flavor = "multi_thread")]
async fn an_iteration_inherits_what_it_says() {
    for engine in engines() {
        let house = engine.house().await;
        house.data("iteration.create", json!({ "title": "first" })).await;
        plan(&house).await;
        house.data("task.create", task("one", json!([]))).await;
        house.data("artifact.save", json!({ "kind": "prd", "content": "# Todo" })).await;
        for (inheritance, plan, documents) in [("none", 0, 0), ("partial", 1, 0), ("full", 1, 1)] {
            let new = json!({ "title": inheritance, "base": 1, "inheritance": inheritance });
            house.data("pm_create_iteration", new).await;
            let tasks = house.data("task.list", json!({})).await["items"].clone();
            assert_eq!(tasks.as_array().unwrap().len(), plan, "{inheritance}");
            let listed = house.data("artifact.list", json!({})).await["items"].clone();
            assert_eq!(listed.as_array().unwrap().len(), documents, "{inheritance}");
            // A copy's names are those of copies.
            assert!(tasks.as_array().unwrap().iter().all(|one| one["featureId"] != "FEAT-001"), "{tasks}");
        }
    }
}
