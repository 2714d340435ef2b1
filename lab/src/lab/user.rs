//! The user of the lab's processes. If root starts the lab, it is `nobody`: a database without a password, running as
//! root, would let every user of the machine write files as root.

use nix::unistd::{self, Gid, Uid};
use std::{
    io,
    path::Path,
    process::{Command, Stdio},
};

/// The user of the servers if root starts the lab.
const UNPRIVILEGED_USER: &str = "nobody";

/// The user of the servers; `None` is the user who started the lab.
#[derive(Debug, Clone, Copy)]
pub(super) struct User(Option<(Uid, Gid)>);

impl User {
    /// Chooses the user, who must be able to enter `folder` and read or run `files`. Returns a warning if the servers run
    /// as root, because no other user can.
    pub(super) fn choose(folder: &Path, files: &[&Path]) -> (Self, Option<String>) {
        if !unistd::geteuid().is_root() {
            return (Self(None), None);
        }
        let entry = unistd::User::from_name(UNPRIVILEGED_USER).ok().flatten();
        let Some(nobody) = entry.map(|user| Self(Some((user.uid, user.gid)))) else {
            return (Self(None), Some(format!("the servers run as root: there is no user {UNPRIVILEGED_USER}")));
        };
        match std::iter::once(&folder).chain(files).find(|path| !nobody.can_read(path)) {
            None => (nobody, None),
            Some(path) => (
                Self(None),
                Some(format!(
                    "the servers run as root, since the user {UNPRIVILEGED_USER} cannot reach {}: \
                     move the project to a folder that everybody may enter, or start the lab as an ordinary user",
                    path.display()
                )),
            ),
        }
    }

    /// Whether the user can read the file: tries it, because mode bits are not the only permissions.
    fn can_read(self, path: &Path) -> bool {
        let mut command = Command::new("setpriv");
        command.args(self.setpriv_options()).args(["--", "test", "-r"]).arg(path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    pub(super) fn id(self) -> u32 {
        self.0.map_or_else(unistd::geteuid, |(uid, _)| uid).as_raw()
    }

    /// Whether this user, as whom the servers run, is root.
    pub(super) fn is_root(self) -> bool {
        self.0.is_none() && unistd::geteuid().is_root()
    }

    /// Options of `setpriv` that switch to the user; none for the user who started the lab.
    pub(super) fn setpriv_options(self) -> Vec<String> {
        self.0.map_or_else(Vec::new, |(uid, gid)| {
            vec![format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]
        })
    }

    /// Creates the folder and its parents, and makes the user its owner.
    pub(super) fn create_folder(self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        self.take_ownership(folder)
    }

    /// Makes the user the owner; does nothing if it is the user who started the lab.
    pub(super) fn take_ownership(self, path: &Path) -> io::Result<()> {
        match self.0 {
            Some((uid, gid)) => std::os::unix::fs::chown(path, Some(uid.as_raw()), Some(gid.as_raw())),
            None => Ok(()),
        }
    }
}
