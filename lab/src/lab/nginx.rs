//! nginx, with the same two configuration files as in the containers.

use super::{
    instance,
    server::{CheckContext, HealthCheck, Server, check_instance},
    user::User,
};
use crate::programs::{self, Requirement};
use futures::FutureExt;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The name of the program, and of the member of a lab.
pub(super) const NAME: &str = "nginx";

const MAIN_CONFIG: &str = include_str!("../../../nginx/nginx.conf");
/// The configuration of the site, with variables for `envsubst`.
const SITE_TEMPLATE: &str = include_str!("../../../nginx/templates/oversell.conf.template");

/// The nginx that the lab starts: the load balancer, and the page's files.
#[derive(Debug)]
pub(super) struct Nginx {
    pub(super) program: PathBuf,
    pub(super) port: u16,
    /// Whether it listens on every address of this machine, not only on loopback.
    pub(super) lan: bool,
    /// The ports of the instances.
    pub(super) behind: Vec<u16>,
    /// The folder of the page's files.
    pub(super) page: PathBuf,
}

pub(super) const REQUIREMENTS: [Requirement; 1] = [(NAME, "nginx-light")];

/// The version, such as `nginx 1.22.1`; `None` if the program does not tell.
pub(super) fn version(program: &Path) -> Option<String> {
    let text = programs::output_of(program, "-v")?;
    let (_, version) = text.split_once("nginx/")?;
    Some(format!("{NAME} {}", programs::version_number(version)))
}

impl Server for Nginx {
    fn requirements(&self) -> &'static [Requirement] {
        programs::missing_requirements(&self.program, &REQUIREMENTS)
    }

    fn config_files(&self, _folder: &Path) -> Vec<(&'static str, String)> {
        let host = if self.lan { "0.0.0.0" } else { "127.0.0.1" };
        let ours = render_site(&format!("{host}:{}", self.port), &self.behind, &self.page);
        vec![("nginx.conf", MAIN_CONFIG.to_owned()), ("conf.d/oversell.conf", ours)]
    }

    fn command(&self, folder: &Path, user: User) -> Command {
        let mut command = Command::new(&self.program);
        // As root nginx would run its workers as another user, who may not enter the folder.
        let user = if user.is_root() { "user root; " } else { "" };
        command
            .args(["-e", "stderr", "-p"])
            .arg(folder)
            .arg("-c")
            .arg(folder.join("nginx.conf"))
            .arg("-g")
            .arg(format!("{user}daemon off;"));
        command
    }

    /// SIGKILL would end only the master; at SIGTERM it ends its workers too.
    fn death_signal(&self) -> &'static str {
        "TERM"
    }

    /// nginx is healthy once an instance of this lab answers through it.
    fn check_health<'a>(&'a self, _context: CheckContext<'a>) -> HealthCheck<'a> {
        async move {
            let is_ours = |name: &str| self.behind.iter().any(|port| instance::name(*port) == name);
            check_instance(self.port, "/health/live", is_ours).await
        }
        .boxed()
    }
}

/// Fills in the variables of the template, as `envsubst` does in the container.
fn render_site(listen: &str, behind: &[u16], static_root: &Path) -> String {
    let server = |port: &u16| format!("server 127.0.0.1:{port} max_fails=1 fail_timeout=2s");
    let servers = |backup: &str| {
        let lines = behind.iter().enumerate().map(|(n, port)| match n {
            0 => format!("{};", server(port)),
            _ => format!("{}{backup};", server(port)),
        });
        lines.collect::<Vec<_>>().join("\n    ")
    };
    let alone = |port: &u16| format!("upstream instance-{} {{server 127.0.0.1:{port};}}", instance::name(*port));
    let each = |of: &dyn Fn(&u16) -> String, between: &str| behind.iter().map(of).collect::<Vec<_>>().join(between);
    SITE_TEMPLATE
        .replace("${INSTANCE_NAMES}", &each(&|port| instance::name(*port), "|"))
        .replace("${INSTANCE_SERVERS}", &each(&alone, "\n"))
        .replace("${HTTP_LISTEN}", listen)
        .replace("${TRUSTED_PROXY}", "127.0.0.1")
        .replace("${UPSTREAM_SERVERS}", &servers(""))
        .replace("${RUNNER_SERVERS}", &servers(" backup"))
        .replace("${STATIC_ROOT}", &static_root.display().to_string())
}

/// The folder of the page's files: that of the sources, or `static` in the current folder if the sources are gone.
pub(super) fn static_root() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../static");
    if source.is_dir() {
        return source;
    }
    std::path::absolute("static").unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_listens_beyond_loopback_only_on_request() {
        let settings = |lan| {
            let nginx = Nginx { program: NAME.into(), port: 8080, lan, behind: vec![8000], page: "/page".into() };
            nginx.config_files(Path::new("/lab"))[1].1.clone()
        };
        assert!(settings(false).contains("listen      127.0.0.1:8080 "));
        assert!(settings(true).contains("listen      0.0.0.0:8080 "));
    }
}
