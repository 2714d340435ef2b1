//! `scripts/install` on a machine where programs are missing.

use crate::support::*;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Output,
};
use tokio::process::Command;

/// A path with nothing but a shell's tools, and an ordinary user with sudo.
struct Machine {
    bin: PathBuf,
    sbin: PathBuf,
    /// What apt was asked for while no service may start.
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Machine {
    /// apt runs `install` for each installation.
    fn new(install: impl FnOnce(&Machine) -> String) -> Result<Machine> {
        let folder = labs::folder()?;
        let machine = Machine {
            bin: folder.path().join("bin"),
            sbin: folder.path().join("sbin"),
            log: folder.path().join("apt.log"),
            _folder: folder,
        };
        for folder in [&machine.bin, &machine.sbin] {
            fs::create_dir(folder)?;
        }
        for tool in ["sh", "cat", "dirname", "grep", "date", "mktemp", "rm", "chmod", "sleep"] {
            symlink(oversell_lab::programs::path(tool), machine.bin.join(tool))?;
        }
        let apt = format!(
            "case $* in update) ;; *) [ -x {}/policy-rc.d ] && echo \"$*\" >>{}; {} ;; esac",
            machine.sbin.display(),
            machine.log.display(),
            install(&machine)
        );
        for (program, does) in [("id", "echo 1000"), ("sudo", "exec \"$@\""), ("true", ""), ("apt-get", &apt)] {
            let file = machine.bin.join(program);
            fs::write(&file, format!("#!/bin/sh\n{does}\n"))?;
            fs::set_permissions(&file, Permissions::from_mode(0o755))?;
        }
        Ok(machine)
    }

    /// Runs `scripts/install`; returns how it ended, and what apt was asked for.
    async fn install(&self, args: &[&str]) -> Result<(Output, String)> {
        let mut command = Command::new(self.bin.join("sh"));
        command.arg("scripts/install").args(args).env_clear();
        command.env("PATH", &self.bin);
        let ended = command.env("OVERSELL_SBIN", &self.sbin).output().await?;
        ensure!(fs::read_dir(&self.sbin)?.next().is_none(), "services could not start afterwards");
        Ok((ended, fs::read_to_string(&self.log).unwrap_or_default()))
    }
}

/// If apt fails, the script says so.
#[apply(test!)]
async fn what_is_missing_is_installed_by_apt() -> Result<()> {
    for (status, install) in [(0, "exit 0"), (2, "exit 100")] {
        let machine = Machine::new(|_| install.to_owned())?;
        let (ended, asked) = machine.install(&["jmeter"]).await?;
        ensure!(
            ended.status.code() == Some(status) && asked.contains(" install ") && asked.ends_with("maven default-jdk-headless\n"),
            "{ended:?}, and apt was asked for {asked:?}"
        );
    }
    Ok(())
}

/// The command finds a C compiler, the rest is installed beside it, and either's failure is the script's. What apt has said comes
/// last.
#[apply(test!)]
async fn packages_are_installed_while_a_command_runs() -> Result<()> {
    for (apt, command, status) in [(0, 0, 0), (0, 3, 3), (100, 0, 2)] {
        let machine = Machine::new(|machine| {
            let compiler = machine.bin.join("cc").display().to_string();
            format!(
                "case $* in *gcc*) echo >{compiler}; chmod 755 {compiler} ;; \
                 *) echo apt was asked; exit {apt} ;; esac"
            )
        })?;
        let build = format!("command -v cc; exit {command}");
        let (ended, asked) = machine.install(&["while", "sh", "-c", &build]).await?;
        let printed = String::from_utf8_lossy(&ended.stdout);
        let [built, installed] = ["bin/cc\n", "apt was asked\n"].map(|line| printed.find(line));
        ensure!(
            ended.status.code() == Some(status)
                && built.is_some()
                && built < installed
                && printed.contains("apt could not install them") == (apt != 0),
            "{ended:?}, and apt was asked for {asked:?}"
        );
        ensure!(asked.lines().count() == 2 && asked.contains(" redis-server"), "apt was asked for {asked:?}");
    }
    Ok(())
}
