//! The host's own repository for one conversation with a remote.
//!
//! It has no commits, no hooks and only settings that are written here, and borrows the workspace's objects. So whatever
//! the workspace's repository is set to do, git reads none of it while it holds the operator's token or key.

use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use crate::fence::TEMP_PREFIX;
use crate::remover::Scratch;
use toolhost_contract::workspace::{Remote, RemoteAccess, RemoteCommand};

/// Most commits that a remote is told of.
const KNOWN_MAX: usize = 1000;
/// Largest key, and largest file of known hosts.
const KEY_BYTES_MAX: u64 = 1 << 20;
/// How long one attempt to connect may take, and how long nothing may arrive.
const CONNECT_SECONDS: u32 = 15;
const STALL_SECONDS: u32 = 30;
/// Where the credential helper finds what it answers: in the environment of git, which runs apart from every command.
const USER_VARIABLE: &str = "TOOLHOST_REMOTE_USER";
const TOKEN_VARIABLE: &str = "TOOLHOST_REMOTE_TOKEN";
/// Git's own protocol for helpers; other questions than `get` are not answered.
const HELPER: &str = "!f() { [ \"$1\" = get ] && printf 'username=%s\\npassword=%s\\n' \"$TOOLHOST_REMOTE_USER\" \"$TOOLHOST_REMOTE_TOKEN\"; }; f";

/// Settings of git; nothing else is read.
const CONFIG: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.pager", "cat"),
    ("core.askPass", "true"),
    ("core.quotePath", "false"),
    // Git would ask the repository whose objects are borrowed for its branches.
    ("core.alternateRefsCommand", "true"),
    // Written beside the objects, they could say something else than the commits do.
    ("core.commitGraph", "false"),
    ("core.multiPackIndex", "false"),
    // The first helper of the list is no helper: it drops those before it.
    ("credential.helper", ""),
    ("http.followRedirects", "false"),
    ("http.emptyAuth", "false"),
    ("http.proxy", ""),
    ("http.cookieFile", ""),
    ("diff.external", ""),
    ("diff.submodule", "short"),
    ("log.showSignature", "false"),
    ("push.gpgSign", "false"),
    ("push.recurseSubmodules", "no"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    // What is fetched is one pack.
    ("fetch.unpackLimit", "1"),
    ("transfer.bundleURI", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("color.ui", "false"),
];

/// A folder with a bare repository, and what git needs beside it. Removed when it is dropped.
pub(crate) struct Stage {
    scratch: Scratch,
    /// Found for this conversation.
    token: Option<String>,
    /// What of it is taken out of what git prints.
    secrets: Vec<String>,
}

impl Stage {
    /// Makes the repository. `objects` are the workspace's.
    pub(crate) fn new(temp: &Path, objects: &Path, remote: &Remote, command: &RemoteCommand) -> Result<Self> {
        let invalid = |what: String| Error::new(ErrorKind::InvalidInput, what);
        let token = match &remote.access {
            RemoteAccess::Token { token, .. } => Some(token.find().map_err(invalid)?),
            RemoteAccess::Open | RemoteAccess::Key { .. } => None,
        };
        let secrets = match (&remote.access, &token) {
            (RemoteAccess::Token { user, .. }, Some(token)) => forms(user, token),
            _ => Vec::new(),
        };
        let stage = Self { scratch: Scratch::new(temp, TEMP_PREFIX)?, token, secrets };
        let repository = stage.repository();
        let folder = |name: &str| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(repository.join(name));
        ["objects/info", "objects/pack", "refs/heads"].into_iter().try_for_each(folder)?;
        std::fs::DirBuilder::new().mode(0o700).create(stage.home())?;
        let format = match command.object_format.as_str() {
            "sha1" => "\trepositoryformatversion = 0\n",
            "sha256" => "\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
            other => return Err(invalid(format!("the repository's object format `{other}` is not known"))),
        };
        let hash = |text: &&String| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let known = command.known.iter().filter(hash).take(KNOWN_MAX);
        let known: String = known.enumerate().map(|(n, hash)| format!("{hash} refs/known/{n}\n")).collect();
        let objects = objects.to_str().filter(|path| !path.contains('\n'));
        let objects = objects.ok_or_else(|| invalid("the workspace's path is not plain text".to_owned()))?;
        for (name, content) in [
            ("HEAD", "ref: refs/heads/none\n"),
            ("config", &format!("[core]\n\tbare = true\n{format}")),
            ("packed-refs", &known),
            // A path that begins with a quote is read as one in C's notation; ours are absolute.
            ("objects/info/alternates", &format!("{objects}\n")),
        ] {
            private(&repository.join(name), content.as_bytes())?;
        }
        if let RemoteAccess::Key { file, known_hosts } = &remote.access {
            private(&stage.key(), &small(file, "the key")?)?;
            private(&stage.known_hosts(), &small(known_hosts, "the file of known hosts")?)?;
        }
        Ok(stage)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.scratch.path()
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.path().join("repository")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    fn key(&self) -> PathBuf {
        self.path().join("key")
    }

    fn known_hosts(&self) -> PathBuf {
        self.path().join("known_hosts")
    }

    /// Gives everything to the user that git runs as. Nothing but what was made here is in it.
    pub(crate) fn give(&self, uid: u32, gid: u32) -> Result<()> {
        let mut todo = vec![self.path()];
        while let Some(path) = todo.pop() {
            if path.is_dir() {
                for entry in std::fs::read_dir(&path)? {
                    todo.push(entry?.path());
                }
            }
            chown(&path, Some(uid), Some(gid))?;
        }
        Ok(())
    }

    /// The whole environment of git.
    pub(crate) fn environment(&self, path: &str, remote: &Remote) -> Vec<(String, String)> {
        let home = self.home().to_string_lossy().into_owned();
        let temp = self.path().to_string_lossy().into_owned();
        let mut env: Vec<(String, String)> = [
            ("PATH", path),
            ("HOME", &home),
            ("XDG_CONFIG_HOME", &home),
            ("TMPDIR", &temp),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            ("GIT_DIR", &self.repository().to_string_lossy()),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "true"),
            ("SSH_ASKPASS_REQUIRE", "never"),
            ("GIT_PAGER", "cat"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_GRAFT_FILE", "/dev/null/none"),
            ("GIT_ALLOW_PROTOCOL", remote.url.protocol()),
            ("GIT_HTTP_LOW_SPEED_LIMIT", "1"),
            ("GIT_HTTP_LOW_SPEED_TIME", &STALL_SECONDS.to_string()),
            ("GIT_SSH_VARIANT", "ssh"),
            ("GIT_SSH_COMMAND", &self.ssh()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let mut config: Vec<(String, String)> =
            CONFIG.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        if let (RemoteAccess::Token { user, .. }, Some(token)) = (&remote.access, &self.token) {
            env.push((USER_VARIABLE.to_owned(), user.clone()));
            env.push((TOKEN_VARIABLE.to_owned(), token.clone()));
            config.push((format!("credential.{}.helper", remote.url.origin()), HELPER.to_owned()));
        }
        env.push(("GIT_CONFIG_COUNT".to_owned(), config.len().to_string()));
        for (n, (key, value)) in config.into_iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{n}"), key));
            env.push((format!("GIT_CONFIG_VALUE_{n}"), value));
        }
        env
    }

    /// Ssh with the one key, to a host whose key is known, without any configuration of a person's.
    fn ssh(&self) -> String {
        let (key, known_hosts) = (self.key(), self.known_hosts());
        let options = [
            "BatchMode=yes".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            "PreferredAuthentications=publickey".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "UpdateHostKeys=no".to_owned(),
            format!("UserKnownHostsFile={}", known_hosts.display()),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "ProxyCommand=none".to_owned(),
            "ControlPath=none".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "ForwardAgent=no".to_owned(),
            format!("ConnectTimeout={CONNECT_SECONDS}"),
            format!("ServerAliveInterval={CONNECT_SECONDS}"),
        ];
        // The folder's name is of our own making and needs no quotes; the temporary folder's is the operator's.
        let options: String = options.iter().map(|option| format!(" -o '{}'", option.replace('\'', "'\\''"))).collect();
        format!("ssh -F /dev/null -i '{}'{options}", key.to_string_lossy().replace('\'', "'\\''"))
    }

    /// Takes the token and our own paths out of what git and the server have said.
    pub(crate) fn hide(&self, text: &mut String) {
        let folder = format!("{}/", self.path().display());
        if text.contains(&folder) {
            *text = text.replace(&folder, "");
        }
        for secret in &self.secrets {
            if text.contains(secret) {
                *text = text.replace(secret, "[redacted]");
            }
        }
    }

    /// The pack of what was fetched.
    pub(crate) fn pack(&self) -> Result<Option<std::fs::File>> {
        let mut packs = Vec::new();
        for entry in std::fs::read_dir(self.repository().join("objects/pack"))? {
            packs.extend(Some(entry?.path()).filter(|path| path.extension().is_some_and(|end| end == "pack")));
        }
        match packs.as_slice() {
            [] => Ok(None),
            [pack] => std::fs::File::open(pack).map(Some),
            _ => Err(Error::other("git fetched more than one pack")),
        }
    }
}

/// A token as it is, as an address quotes it, and as it is sent: a server may print any of them.
fn forms(user: &str, token: &str) -> Vec<String> {
    let quoted = token.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    vec![token.to_owned(), quoted.collect(), base64(format!("{user}:{token}").as_bytes())]
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let all = three.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            text.push(char::from(DIGITS[all >> (18 - 6 * place) & 63]));
        }
    }
    text + &"=".repeat((3 - bytes.len() % 3) % 3)
}

/// A file for its owner alone from its first moment.
fn private(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)
}

fn small(path: &Path, what: &str) -> Result<Vec<u8>> {
    // Which file that is, the operator finds in the configuration.
    let failed =
        |error: &Error| Error::new(ErrorKind::InvalidInput, format!("{what} cannot be read: {}", error.kind()));
    let about = std::fs::metadata(path).map_err(|error| failed(&error))?;
    if !about.is_file() || about.len() > KEY_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{what} is not a file of at most {KEY_BYTES_MAX} bytes"),
        ));
    }
    std::fs::read(path).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_http() {
        // The examples of RFC 4648.
        for (plain, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
