//! `scripts/install` on a machine where programs are missing.

use crate::support::*;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};
use tokio::process::Command;

/// On a path with nothing but a shell's tools, an ordinary user with sudo. apt is asked for what is missing while no service
/// may start; if it fails, the script says so.
#[apply(test!)]
async fn what_is_missing_is_installed_by_apt() -> Result<()> {
    let folder = labs::folder()?;
    let (bin, sbin) = (folder.path().join("bin"), folder.path().join("sbin"));
    for folder in [&bin, &sbin] {
        fs::create_dir(folder)?;
    }
    for tool in ["sh", "dirname", "grep", "date", "rm", "chmod", "sleep"] {
        symlink(oversell_lab::programs::path(tool), bin.join(tool))?;
    }
    let log = folder.path().join("apt.log");
    let apt = |install: &str| {
        format!(
            "case $* in update) ;; *) [ -x {}/policy-rc.d ] && echo \"$*\" >{}; {install} ;; esac",
            sbin.display(),
            log.display()
        )
    };
    for (status, install) in [(0, "exit 0"), (2, "exit 100")] {
        let programs = [
            ("id", "echo 1000"),
            ("sudo", "exec \"$@\""),
            ("apt-get", &apt(install)),
        ];
        for (program, does) in programs {
            let file = bin.join(program);
            fs::write(&file, format!("#!/bin/sh\n{does}\n"))?;
            fs::set_permissions(&file, Permissions::from_mode(0o755))?;
        }
        let ended = Command::new(bin.join("sh"))
            .args(["scripts/install", "jmeter"])
            .env_clear()
            .env("PATH", &bin)
            .env("OVERSELL_SBIN", &sbin)
            .output()
            .await?;
        let asked = fs::read_to_string(&log).unwrap_or_default();
        ensure!(
            ended.status.code() == Some(status)
                && asked.contains(" install ")
                && asked.ends_with("maven default-jdk-headless\n"),
            "{ended:?}, and apt was asked for {asked:?}"
        );
        ensure!(
            fs::read_dir(&sbin)?.next().is_none(),
            "services could not start afterwards"
        );
        fs::remove_file(&log)?;
    }
    Ok(())
}
