//! A remote that the operator grants in the configuration, with its token among the keys.

use toolhost_testkit::{HttpGit, TempWorkspace};

use crate::room::program;

const TOKEN: &str = "s3cret+token/of-the-operator";
/// `git:` and the token, as a client of HTTP sends them.
const AUTHORIZATION: &str = "Basic Z2l0OnMzY3JldCt0b2tlbi9vZi10aGUtb3BlcmF0b3I=";

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_grants_a_remote_in_the_configuration() {
    let server = HttpGit::start(Some(AUTHORIZATION)).await;
    server.repositories.make("a.git");
    let url = server.url("a.git");
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    workspace.git(&["remote", "add", "origin", &url]);
    let config = format!(
        "[[remotes]]\nname = 'origin'\nurl = '{url}'\ntoken = 'PROJECT_TOKEN'\n\
         [[profiles.all.rules]]\ntool = 'git.push'\ndecide = 'allow'\nwhy = 'test'\n"
    );
    workspace.write_beside("home/.config/toolhost/config.toml", &config);
    let program = program(&workspace);
    let push = || program.run(&["--json", "call", "git.push", "{}"]).json();
    let without = push();
    assert!(without.to_string().contains("toolhost key set PROJECT_TOKEN"), "{without}");
    let kept = program.run_with_input(&["key", "set", "PROJECT_TOKEN", "--in", "file"], TOKEN.as_bytes());
    assert_eq!(kept.code, Some(0), "{kept:?}");
    let pushed = push();
    assert_eq!(pushed["ok"], true, "{pushed}");
    assert_eq!(
        server.repositories.commit("a.git", "main").as_deref(),
        Some(workspace.git(&["rev-parse", "HEAD"]).trim())
    );
    assert!(program.run(&["key", "list"]).stdout.contains("PROJECT_TOKEN"));
    for (table, says) in [
        ("name = 'origin'\nurl = 'http://git.example.org/a.git'\ntoken = 'X'", "use https"),
        ("name = 'origin'\nurl = 'https://user:pw@git.example.org/a.git'", "name the token"),
        ("name = 'origin'\nurl = 'git@git.example.org:a.git'", "needs a `key`"),
        ("name = 'origin'\nurl = 'git@git.example.org:a.git'\ntoken = 'X'", "takes a `key`"),
        ("name = 'origin'\nurl = 'git@git.example.org:a.git'\nkey = 'id'", "not an absolute path"),
        ("name = 'origin'\nurl = 'ext::sh -c evil'", "an address is"),
        ("name = '-o'\nurl = 'https://git.example.org/a.git'", "its name"),
    ] {
        workspace.write_beside("home/.config/toolhost/config.toml", &format!("[[remotes]]\n{table}\n"));
        let refused = program.run(&["call", "git.status", "{}"]);
        assert!(refused.code != Some(0) && refused.stderr.contains(says), "{says}: {refused:?}");
    }
}
