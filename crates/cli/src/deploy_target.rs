//! Which folders a workspace may be deployed to: not those that are the system's, nor a whole home.

use std::path::Path;

use anyhow::bail;

/// Neither these nor any folder in them.
const SYSTEM: &[&str] =
    &["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"];
/// Folders in these are an administrator's own.
const LOCAL: &[&str] = &["/usr/local", "/usr/share"];
/// Not these themselves, for they hold what belongs to many.
const SHARED: &[&str] = &[
    "/", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/var", "/var/lib", "/var/log", "/var/tmp",
];

/// Refuses a target that nobody means. What is not there yet is judged by its name.
pub(crate) fn check(target: &Path, home: &Path) -> anyhow::Result<()> {
    let real = target.canonicalize().unwrap_or_else(|_| target.to_owned());
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    for path in [target, &real] {
        let is_system = SYSTEM.iter().any(|folder| path.starts_with(folder));
        let is_local = LOCAL.iter().any(|folder| path.starts_with(folder) && path != Path::new(folder));
        let why = if SHARED.iter().any(|folder| path == Path::new(folder)) || (is_system && !is_local) {
            "it is a folder of the system"
        } else if path == home {
            "it is your home folder"
        } else if home.starts_with(path) {
            "it contains your home folder"
        } else {
            continue;
        };
        bail!(
            "{} cannot be the deploy target: {why}. Choose a project folder with --deploy-to, or `to` below [deploy]",
            target.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_system_and_a_whole_home_are_refused() {
        let check = |path: &str| check(Path::new(path), Path::new("/home/nobody-here/me"));
        for path in
            ["/", "/etc", "/etc/nginx", "/usr", "/usr/bin", "/usr/share", "/bin", "/tmp", "/home", "/var", "/sys/x"]
        {
            let refused = check(path).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("it is a folder of the system") && refused.starts_with(path), "{path}: {refused}");
        }
        for path in ["/home/nobody-here/me", "/home/nobody-here"] {
            assert!(check(path).is_err(), "{path}");
        }
        for path in
            ["/home/nobody-here/me/site", "/srv/www", "/var/www/html", "/usr/local/www/site", "/opt/site", "/etcetera"]
        {
            assert!(check(path).is_ok(), "{path}");
        }
    }
}
