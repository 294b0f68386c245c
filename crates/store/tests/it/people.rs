//! People: who is what in which project, and that a project is never left without an owner.

use toolhost_store::{Error, Member, Role};
use toolhost_testkit::database::{Room, engines};

#[tokio::test(flavor = "multi_thread")]
async fn whoever_registers_a_project_owns_it_and_others_are_strangers() {
    for place in engines() {
        let Room { store, project, user } = place.room().await;
        let people = store.people();
        assert_eq!(people.role(project, user).await.unwrap(), Some(Role::Owner), "{place}");
        let ann = people.add_user("ann").await.unwrap();
        assert_eq!(people.role(project, ann).await.unwrap(), None, "{place}");
        assert_eq!(people.role(project + 1, user).await.unwrap(), None, "{place}: there is no such project");
        assert_eq!(people.role(project, 999).await.unwrap(), None, "{place}: there is no such user");
        assert_eq!(people.user("bob").await.unwrap(), None);
        // Another who comes to it later does not.
        let again = store.project(&place.workspace(), "ws", "ann").await.unwrap();
        assert_eq!((again.id, people.role(project, ann).await.unwrap()), (project, None), "{place}");
        let other = store.project(&place.workspace().join("other"), "other", "ann").await.unwrap().id;
        assert_eq!(people.role(other, ann).await.unwrap(), Some(Role::Owner), "{place}");
        assert_eq!(people.role(other, user).await.unwrap(), None, "{place}: two projects are apart");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_given_changed_and_taken() {
    for place in engines() {
        let Room { store, project, .. } = place.room().await;
        let people = store.people();
        let ann = people.add_user("ann").await.unwrap();
        assert_eq!(people.add_user("ann").await.unwrap(), ann, "{place}: a name is one user");
        let like = people.add_user("Ann").await.unwrap_err().to_string();
        assert!(like.contains("`Ann` differs from the user `ann`"), "{place}: {like}");
        for role in [Role::Viewer, Role::Editor, Role::Owner, Role::Editor, Role::Editor] {
            people.set_role(project, ann, role).await.unwrap();
            assert_eq!(people.role(project, ann).await.unwrap(), Some(role), "{place}");
        }
        let members = people.members(project).await.unwrap();
        let told: Vec<(&str, Role)> = members.iter().map(|Member { name, role, .. }| (name.as_str(), *role)).collect();
        assert_eq!(told, [("ann", Role::Editor), ("local", Role::Owner)], "{place}");
        assert!(people.remove(project, ann).await.unwrap());
        assert!(!people.remove(project, ann).await.unwrap(), "{place}: she was none any more");
        assert_eq!(people.members(project).await.unwrap().len(), 1);
        assert!(people.set_role(project, 999, Role::Viewer).await.is_err(), "{place}: a user that is none");
        assert!(people.set_role(999, ann, Role::Owner).await.is_err(), "{place}: a project that is none");
        assert!(people.members(999).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_stays() {
    for place in engines() {
        let Room { store, project, user } = place.room().await;
        let people = store.people();
        for role in [Role::Editor, Role::Viewer] {
            assert!(matches!(people.set_role(project, user, role).await, Err(Error::LastOwner)), "{place}");
        }
        assert!(matches!(people.remove(project, user).await, Err(Error::LastOwner)), "{place}");
        people.set_role(project, user, Role::Owner).await.unwrap();
        let ann = people.add_user("ann").await.unwrap();
        people.set_role(project, ann, Role::Owner).await.unwrap();
        people.set_role(project, user, Role::Viewer).await.unwrap();
        assert!(matches!(people.remove(project, ann).await, Err(Error::LastOwner)), "{place}: now it is she");
        assert!(people.remove(project, user).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_who_leave_at_once_leave_one_behind() {
    for place in engines() {
        for round in 0..10 {
            let (one, other) = (place.room().await, place.room().await);
            let workspace = place.workspace().join(round.to_string());
            let project = one.store.project(&workspace, "ws", "local").await.unwrap().id;
            let mut owners = vec![one.user];
            for name in ["ann", "bob", "cid"] {
                let user = one.store.people().add_user(name).await.unwrap();
                one.store.people().set_role(project, user, Role::Owner).await.unwrap();
                owners.push(user);
            }
            let mut leaving = tokio::task::JoinSet::new();
            for (n, owner) in owners.into_iter().enumerate() {
                let people = if n % 2 == 0 { one.store.people() } else { other.store.people() };
                leaving.spawn(async move {
                    match n {
                        0 | 1 => people.remove(project, owner).await.is_ok(),
                        _ => people.set_role(project, owner, Role::Viewer).await.is_ok(),
                    }
                });
            }
            let left = leaving.join_all().await.into_iter().filter(|left| *left).count();
            let members = one.store.people().members(project).await.unwrap();
            let owners = members.iter().filter(|member| member.role == Role::Owner).count();
            assert_eq!((left, owners), (3, 1), "{place}, round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_something_to_be_seen() {
    for place in engines() {
        let store = place.open().await;
        let people = store.people();
        let long = "x".repeat(100);
        for name in ["a", "Ann Ünsal", "数", "o'neil", "%", long.as_str(), "🚀"] {
            let user = people.add_user(name).await.unwrap();
            assert_eq!(people.user(name).await.unwrap(), Some(user), "`{name}` on {place}");
        }
        let too_long = "x".repeat(101);
        let nothing = [
            "",
            " ",
            "\t",
            "a\0",
            "a\nb",
            "\u{7f}",
            "\u{200b}",
            "local\u{200b}",
            "\u{202e}nna",
            "\u{feff}",
            "\u{a0}",
            "\u{3000} ",
        ];
        for name in nothing.into_iter().chain([too_long.as_str()]) {
            let refused = people.add_user(name).await;
            assert!(matches!(refused, Err(Error::Name(_))), "{name:?} on {place}: {refused:?}");
        }
        assert_ne!(people.user("a").await.unwrap(), people.user("%").await.unwrap());
        assert_eq!(people.user("A").await.unwrap(), None, "{place}: capitals tell names apart");
    }
}
