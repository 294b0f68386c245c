//! A real browser: Chromium without a window, driven over WebDriver (W3C) by a client of our own.
//!
//! It stands under a watchdog: a shell whose input only this process holds. When the input closes, because the tests ended, panicked or were
//! killed, the shell kills the driver and the browser with it. Where they cannot be had, [`Browser::start`] says so once and the tests
//! skip what needs one.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_client::HttpConnection;

/// With the value `required`, a browser that cannot be had fails the tests instead of skipping them.
const DEMAND: &str = "TOOLHOST_TEST_BROWSER";
/// Debian's packages `chromium-driver` and `chromium`.
const PROGRAMS: [&str; 2] = ["/usr/bin/chromedriver", "/usr/bin/chromium"];
/// The signals are those that would end it before it has cleaned up.
const WATCHDOG: &str = "trap '' HUP INT PIPE TERM
\"$0\" --port=0 2>&1 &
while read -r line; do :; done
kill -KILL 0";
/// What the driver says when it listens, before the number of the port.
const LISTENS: &str = "started successfully on port ";
/// The name of an element's id in WebDriver.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Looks for what is awaited on a page, and the pause after each: a minute without it is a failure.
const LOOKS_MAX: u32 = 2400;
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How long the browser may take for one command.
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// What checks whether a page is accessible: its package, and its file there.
const AXE: &str = "axe-core@4.14.1";
const AXE_FILE: &str = "package/axe.min.js";

/// Keys that are no characters, as WebDriver writes them.
pub mod keys {
    pub const ENTER: &str = "\u{e007}";
    pub const TAB: &str = "\u{e004}";
    pub const ESCAPE: &str = "\u{e00c}";
    pub const DOWN: &str = "\u{e015}";
    pub const CONTROL: &str = "\u{e009}";
}

/// A browser with one window, and no cookies of another one.
pub struct Browser {
    driver: SocketAddr,
    session: String,
    watchdog: Child,
    /// Its profile, which goes with it.
    _folder: TempDir,
}

impl Browser {
    /// `None`: there is no Chromium here, and nobody demands one.
    pub async fn start() -> Option<Self> {
        static MISSING: OnceLock<Option<String>> = OnceLock::new();
        let missing = MISSING.get_or_init(|| {
            let missing = PROGRAMS.iter().find(|program| !Path::new(program).is_file())?;
            let reason = format!("there is no {missing}: install chromium and chromium-driver");
            // Not `eprintln!`, which the test runner keeps to itself when a test passes. A closed stderr is fine.
            let _ = writeln!(std::io::stderr(), "SKIPPED: the tests in a browser; {reason}");
            Some(reason)
        });
        if let Some(reason) = missing {
            let is_demanded = std::env::var_os(DEMAND).is_some_and(|value| value == "required");
            assert!(!is_demanded, "{DEMAND}=required, but {reason}");
            return None;
        }
        Some(Self::started().await)
    }

    async fn started() -> Self {
        let folder = tempfile::Builder::new().prefix("toolhost-browser-").tempdir_in("/var/tmp").unwrap();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", WATCHDOG, PROGRAMS[0]]).process_group(0).env("HOME", folder.path());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut watchdog = shell.spawn().unwrap();
        let lines = BufReader::new(watchdog.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, after) = line.rsplit_once(LISTENS)?;
            after.trim_end_matches('.').parse::<u16>().ok()
        });
        let driver = SocketAddr::from(([127, 0, 0, 1], port.unwrap()));
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--force-color-profile=srgb".to_owned(),
            format!("--user-data-dir={}", folder.path().join("profile").display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "binary": PROGRAMS[1], "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = asked(driver, ("POST", "/session"), &wanted).await;
        let session = made["sessionId"].as_str().unwrap().to_owned();
        Self { driver, session, watchdog, _folder: folder }
    }

    async fn post(&self, command: &str, body: Value) -> Value {
        asked(self.driver, ("POST", &format!("/session/{}/{command}", self.session)), &body).await
    }

    async fn get(&self, command: &str) -> Value {
        asked(self.driver, ("GET", &format!("/session/{}/{command}", self.session)), &Value::Null).await
    }

    /// Opens an address, and waits until it is loaded.
    pub async fn open(&self, url: &str) {
        self.post("url", json!({ "url": url })).await;
    }

    /// Waits until the page is at an address: a click may be over before the page that it leads to has begun.
    pub async fn until_at(&self, url: &str) {
        let mut at = Value::Null;
        for _ in 0..LOOKS_MAX {
            at = self.get("url").await;
            if at == url {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        unreachable!("not within a minute: {url}; the page is at {at}");
    }

    pub async fn title(&self) -> String {
        self.get("title").await.as_str().unwrap().to_owned()
    }

    /// Runs the body of a function on the page; what it returns.
    pub async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// The same for a function that calls the last of its arguments with what it comes to.
    pub async fn run_async(&self, script: &str) -> Value {
        self.post("execute/async", json!({ "script": script, "args": [] })).await
    }

    /// The text that a person sees of the page.
    pub async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Whether an element is there.
    pub async fn has(&self, css: &str) -> bool {
        !self.post("elements", json!({ "using": "css selector", "value": css })).await.as_array().unwrap().is_empty()
    }

    /// Waits for an element: the page that a click leads to may still be on its way.
    async fn find(&self, css: &str) -> String {
        for _ in 0..LOOKS_MAX {
            let found = self.post("elements", json!({ "using": "css selector", "value": css })).await;
            if let Some(element) = found[0][ELEMENT].as_str() {
                return element.to_owned();
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        unreachable!("not within a minute: {css}");
    }

    pub async fn click(&self, css: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/click"), json!({})).await;
    }

    /// Types into an element, which has the focus then.
    pub async fn type_into(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/value"), json!({ "text": text })).await;
    }

    /// Presses keys one after the other, wherever the focus is.
    pub async fn keys(&self, keys: &str) {
        let pressed = |key: char| [("keyDown", key), ("keyUp", key)];
        let actions = keys.chars().flat_map(pressed).map(|(kind, key)| json!({ "type": kind, "value": key }));
        self.press(actions.collect()).await;
    }

    /// Presses a key while another one is held.
    pub async fn chord(&self, held: &str, key: &str) {
        let steps = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        self.press(steps.map(|(kind, key)| json!({ "type": kind, "value": key })).to_vec()).await;
    }

    async fn press(&self, actions: Vec<Value>) {
        self.post("actions", json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] })).await;
    }

    /// Waits until an expression holds on the page; a minute without it is a failure.
    pub async fn until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        for _ in 0..LOOKS_MAX {
            if self.run(&script).await == true {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        unreachable!("not within a minute: {expression}; the page says: {}", self.text().await);
    }

    /// Waits until this stands on the page.
    pub async fn until_says(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    /// The size of the window's content, in CSS pixels.
    pub async fn size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// What the person prefers: `light` or `dark`.
    pub async fn scheme(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// From the next page on no script of a page runs.
    pub async fn script_off(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    }

    /// Whether the browser has a network.
    pub async fn online(&self, is_online: bool) {
        let network = json!({ "offline": !is_online, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.devtools("Network.enable", json!({})).await;
        self.devtools("Network.emulateNetworkConditions", network).await;
    }

    async fn devtools(&self, method: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({ "cmd": method, "params": parameters })).await
    }

    /// What the console has said since this was asked last: errors of scripts, of what was loaded, and of the content security policy.
    pub async fn messages(&self) -> Vec<String> {
        let log = self.post("se/log", json!({ "type": "browser" })).await;
        log.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// What axe-core finds wrong with the page.
    pub async fn findings(&self) -> Vec<String> {
        let axe = axe();
        self.devtools("Runtime.evaluate", json!({ "expression": axe, "silent": true })).await;
        let found = self
            .run_async(
                "const done = arguments[arguments.length - 1];
                 axe.run(document, { resultTypes: ['violations'] }).then(
                     (all) => done(all.violations.flatMap((rule) => rule.nodes.map((node) =>
                         rule.id + ': ' + node.html.slice(0, 200) + ' ' + node.failureSummary))),
                     (error) => done(['axe failed: ' + error]));",
            )
            .await;
        found.as_array().unwrap().iter().map(|finding| finding.as_str().unwrap().to_owned()).collect()
    }

    /// Writes an image of the window to a file.
    pub async fn screenshot(&self, path: &Path) {
        let image = self.get("screenshot").await;
        let image = base64::engine::general_purpose::STANDARD.decode(image.as_str().unwrap()).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, image).unwrap();
    }

    /// Where tests put images of pages: the folder `screenshots` of the target folder.
    pub fn screenshots() -> PathBuf {
        target().join("screenshots")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The watchdog kills its group, and itself with it, once its input is closed.
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

/// The answer to a command.
async fn asked(driver: SocketAddr, command: (&str, &str), body: &Value) -> Value {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    // The driver does not close a connection, whatever it is asked.
    let mut connection = HttpConnection::open(driver).await.unwrap();
    let asking = connection.ask(command, &[], &text);
    let reply = tokio::time::timeout(COMMAND_MAX, asking).await.expect("the driver answers").unwrap();
    let mut answer = reply.json();
    assert_eq!(reply.status, 200, "{} {}: {}", command.1, text.chars().take(300).collect::<String>(), answer["value"]);
    answer["value"].take()
}

/// The target folder of the test that is running: `target/debug/deps/TEST`.
fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

/// The source of axe-core (MPL-2.0), which is no part of the repository: npm, which checks that it is whole, fetches it once.
fn axe() -> &'static str {
    static AXE_SOURCE: OnceLock<String> = OnceLock::new();
    AXE_SOURCE.get_or_init(|| {
        let place = target().join(AXE.replace('@', "-"));
        if !place.join(AXE_FILE).is_file() {
            std::fs::create_dir_all(target()).unwrap();
            let folder = tempfile::tempdir_in(target()).unwrap();
            let mut npm = Command::new("npm");
            npm.args(["pack", "--silent", AXE]).current_dir(folder.path());
            assert!(runs(&mut npm), "npm cannot fetch {AXE}, without which nobody knows whether pages are accessible");
            let packed = folder.path().join(format!("{}.tgz", AXE.replace('@', "-")));
            assert!(
                runs(Command::new("tar").arg("-xzf").arg(packed).current_dir(folder.path())),
                "tar cannot unpack it"
            );
            // Another process of the tests may have been faster: its files are the same.
            let _ = std::fs::rename(folder.keep(), &place);
        }
        std::fs::read_to_string(place.join(AXE_FILE)).unwrap()
    })
}

fn runs(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}
