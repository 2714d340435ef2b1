//! Rules of the compose file, checked in its text: Docker is not needed.

use crate::support::*;
use oversell::config::Config;
use secrecy::ExposeSecret;
use std::{fs, process::Command};

const COMPOSE: &str = include_str!("../docker-compose.yml");
const DOCKERFILE: &str = include_str!("../Dockerfile");
const ETCD: &str = include_str!("../config/etcd.Dockerfile");
const GALERA: &str = include_str!("../config/galera");
const REPLICATED: &str = include_str!("../config/replicated");

/// The values in lines that begin with this word.
fn values_after<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let lines = text.lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix(word)).map(str::trim).collect()
}

/// Images are built once and pinned to a version; nginx resolves a server's name again and again.
fn keeps_the_rules(compose: &str, dockerfile: &str) -> Result<()> {
    let builds = values_after(compose, "build:").into_iter().filter(|build| !build.contains("etcd.Dockerfile")).count();
    ensure!(builds == 1, "{builds} services build the image");
    let images = values_after(compose, "image:").into_iter();
    let images = images.chain([dockerfile, ETCD].into_iter().flat_map(|file| values_after(file, "FROM")));
    let mut pinned = 0;
    for image in images.filter(|image| !image.starts_with("${OVERSELL_IMAGE:-") && *image != "oversell-etcd") {
        let tag = image.rsplit(':').next().unwrap_or_default();
        let version = tag.trim_start_matches('v').split(['-', '}', ' ']).next();
        let parts: Vec<_> = version.unwrap_or_default().split('.').collect();
        let numbers = parts.iter().all(|part| part.parse::<u32>().is_ok());
        ensure!(numbers && parts.len() >= 2, "{image} floats");
        pinned += 1;
    }
    ensure!(pinned >= 8, "only {pinned} images");
    // `pull` and the first `up` look in no registry for the image that is built here.
    let app = block(compose, "x-app:")?;
    ensure!(
        values_after(app, "pull_policy:").iter().any(|policy| policy.starts_with("never")),
        "our image is looked for in a registry"
    );
    for service in compose.split("\n\n").filter(|part| part.contains("  image: ")) {
        ensure!(service.contains("<<: "), "may do anything: {service}");
    }
    let mysql = block(compose, "  mysql:")?;
    let limits = values_after(mysql, "start_period:");
    ensure!(limits.iter().any(|time| time.starts_with("5m")), "a first start is given up after {limits:?}");
    let servers = compose.split("server app-").skip(1);
    for server in servers {
        let server = server.split(';').next().unwrap_or_default();
        ensure!(server.contains(" resolve"), "{server} keeps its address");
    }
    Ok(())
}

#[apply(test!)]
fn a_broken_rule_of_the_compose_file_is_caught() -> Result<()> {
    keeps_the_rules(COMPOSE, DOCKERFILE)?;
    for (from, to, by) in [
        ("redis:7.2.11", "redis:latest", "floats"),
        ("resolve max_fails", "max_fails", "keeps its address"),
        ("profiles: [small]", "build: .", "build the image"),
        ("pull_policy: never", "pull_policy: always", "in a registry"),
        ("  jmeter:\n    <<: *held", "  jmeter:", "may do anything"),
        ("start_period: 5m   # the first", "retries: 1 #", "is given up"),
    ] {
        ensure!(COMPOSE.contains(from), "{from} is not there to be broken");
        caught(keeps_the_rules(&COMPOSE.replace(from, to), DOCKERFILE), by)?;
    }
    Ok(())
}

/// The settings of instances in this part of the file: names in the configuration, and default values.
fn settings(part: &str) -> Vec<(String, String)> {
    let setting = |text: &str| {
        let (name, value) = text.split_once(": ").unwrap_or_default();
        let mut lines = value.lines();
        let value = match lines.next().unwrap_or_default() {
            ">-" => lines.next().unwrap_or_default().trim(),
            value => value.trim_end_matches("\"}"),
        };
        let mut value = value.trim_matches('"').to_owned();
        while let Some((before, after)) = value.split_once("${") {
            let (variable, rest) = after.split_once('}').unwrap_or_default();
            let (_, default) = variable.split_once(":-").unwrap_or_default();
            value = format!("{before}{default}{rest}");
        }
        (name.to_lowercase().replace("__", "."), value)
    };
    part.split("OVERSELL__").skip(1).map(setting).collect()
}

fn read(settings: &[(String, String)]) -> Result<Config> {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    Ok(Config::load_with(None, &settings)?)
}

/// The lines below this one, up to the next empty line.
fn block<'a>(compose: &'a str, line: &str) -> Result<&'a str> {
    let (_, after) = compose.split_once(&format!("\n{line}")).with_context(|| format!("no {line}"))?;
    Ok(after.split("\n\n").next().unwrap_or_default())
}

/// The configuration accepts each setting. With the profile `ha` it names three servers of each kind, and each host is
/// a service of the file.
fn knows_its_servers(compose: &str) -> Result<()> {
    read(&settings(compose))?;
    let ha = [settings(block(compose, "x-app-environment:")?), settings(block(compose, "x-ha-app-environment:")?)];
    let ha = read(&ha.concat())?;
    ensure!(ha.mysql.causal_reads, "reads may be stale");
    let secrets = |urls: &[secrecy::SecretString]| -> Vec<String> {
        let urls = urls.iter().map(ExposeSecret::expose_secret);
        urls.map(str::to_owned).collect()
    };
    let ensemble = ha.zookeeper.connect.split(',').map(str::to_owned);
    for addresses in [secrets(&ha.mysql.urls), secrets(&ha.redis.sentinels), ensemble.collect()] {
        ensure!(addresses.len() == 3, "{} servers", addresses.len());
        for address in addresses {
            let host = address.rsplit(['@', '/']).find(|part| part.contains(':'));
            let host = host.and_then(|part| part.split(':').next());
            let host = host.unwrap_or_default();
            ensure!(compose.contains(&format!("\n  {host}:")), "no service {host}");
        }
    }
    // The lights show a server by its service, if it announces that address.
    let ports = [("mysql", 3306), ("redis", 6379), ("zookeeper", 2181)];
    let known = ports.iter().flat_map(|(kind, port)| (1..=3).map(move |n| format!("ha-{kind}-{n}=ha-{kind}-{n}:{port}")));
    let known: Vec<_> = known.collect();
    let members = &ha.cluster.members;
    ensure!(*members == known, "the lights know {members:?}");
    let mut service = "";
    let mut hosts = 0;
    for line in compose.lines() {
        if let Some(name) = line.strip_prefix("  ")
            && !name.starts_with([' ', '#'])
        {
            service = name.split(':').next().unwrap_or_default();
        }
        if let Some(host) = line.trim().strip_prefix("hostname: ") {
            ensure!(host == service, "{service} has the host name {host}");
            hosts += 1;
        }
    }
    ensure!(hosts == 9, "{hosts} host names");
    Ok(())
}

#[apply(test!)]
fn container_instances_read_settings_and_find_their_servers() -> Result<()> {
    knows_its_servers(COMPOSE)?;
    for (from, to, by) in [
        ("REDIS__SENTINELS:", "REDIS__SENTINEL:", "sentinel"),
        ("SERVER__PORT: \"8200\"", "SERVER__PORTS: \"8200\"", "ports"),
        ("WAIT_REPLICAS: all", "WAIT_REPLICAS: most", "wait_replicas"),
        (",ha-zookeeper-3:2181", "", "2 servers"),
        ("=ha-redis-3:6379", "=ha-redis-2:6379", "ha-redis-3=ha-redis-2:6379"),
        ("=ha-mysql-1:3306", "=3306", "cluster.members"),
        ("@ha-mysql-2:3306", "@ha-mysq1-2:3306", "no service ha-mysq1-2"),
        ("hostname: ha-redis-2", "hostname: ha-redis-3", "ha-redis-2 has the host name"),
        ("CAUSAL_READS: \"true\"", "CAUSAL_READS: \"false\"", "stale"),
    ] {
        ensure!(COMPOSE.contains(from), "{from} is not there to be broken");
        caught(knows_its_servers(&COMPOSE.replace(from, to)), by)?;
    }
    Ok(())
}

/// The lights know a server by the name that it announces. A node's script is the first process of its container: it passes signals on
/// to its server, which runs as another user.
#[apply(test!)]
fn servers_in_containers_announce_their_names_and_hear_signals() -> Result<()> {
    for (file, said) in [
        (GALERA, "--wsrep-node-incoming-address=\"$name:3306\"\n"),
        (REPLICATED, "\"replica-announce-ip $name\"\n"),
        (GALERA, "\ntrap 'kill \"$server\"' TERM\n"),
        (block(COMPOSE, "  ha-mysql-1:")?, " KILL,"),
    ] {
        ensure!(file.contains(said), "not said: {said}");
    }
    Ok(())
}

/// Cargo accepts the manifests that the Dockerfile writes before it copies the sources.
fn begins_with_a_workspace(dockerfile: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (copied, step) = dockerfile.split_once("\nRUN ").context("no RUN")?;
    let (step, _) = step.split_once("&& cargo build").context("no build")?;
    for line in values_after(copied, "COPY ") {
        let (files, to) = line.rsplit_once(' ').context("COPY to nowhere")?;
        let to = folder.path().join(to);
        fs::create_dir_all(&to)?;
        for file in files.split(' ') {
            let name = file.rsplit('/').next().unwrap_or_default();
            fs::copy(file, to.join(name))?;
        }
    }
    let home = folder.path().join("home");
    fs::create_dir(&home)?;
    let crates = "sparse+http://near.example/index/";
    let mut make = Command::new("sh");
    make.arg("-c").arg(format!("{step}&& true"));
    make.env("CARGO_HOME", &home).env("CRATES", crates);
    let made = make.current_dir(&folder).status()?;
    ensure!(made.success(), "{made}");
    let settings: toml::Table = toml::from_str(&fs::read_to_string(home.join("config.toml"))?)?;
    let source = settings["source"]["crates-io"]["replace-with"].as_str();
    let registry = &settings["source"][source.context("no source")?]["registry"];
    ensure!(registry.as_str() == Some(crates), "crates from {registry:?}");
    // Cargo checks the sources that a manifest names before it misses this program, and compiles nothing.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--offline", "--bin", "none"]);
    let said = cargo.current_dir(&folder).output()?.stderr;
    let said = String::from_utf8_lossy(&said);
    ensure!(said.contains("no bin target named `none`"), "{said}");
    Ok(())
}

#[apply(test!)]
fn the_image_is_built_from_manifests_that_cargo_reads() -> Result<()> {
    begins_with_a_workspace(DOCKERFILE)?;
    let named = DOCKERFILE.replace("sed -i '/^\\[\\[/,/^$/d'", "true");
    ensure!(named != DOCKERFILE, "no tests and examples are left out");
    caught(begins_with_a_workspace(&named), "can't find")?;
    let far = DOCKERFILE.replace("registry = \"%s\"", "registry = \"far\"");
    caught(begins_with_a_workspace(&far), "crates from")?;
    let unwritten = DOCKERFILE.replace("touch lock/src/lib.rs", "true");
    caught(begins_with_a_workspace(&unwritten), "no targets specified")
}

/// A shell in a container does not run a script with Windows line ends, and a migration with them has another checksum: git checks
/// every text out with Unix line ends, whatever `core.autocrlf` is.
#[apply(test!)]
fn every_text_is_checked_out_with_unix_line_ends() -> Result<()> {
    let git = Command::new("git")
        .args(["-c", "core.autocrlf=true", "ls-files", "--eol"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()?;
    ensure!(git.status.success(), "{git:?}");
    let listed = String::from_utf8(git.stdout)?;
    ensure!(listed.lines().count() > 500, "{listed}");
    for line in listed.lines() {
        // i/KIND w/KIND attr/ATTRIBUTES, and after a tab the file.
        let (kinds, _) = line.split_once('\t').context("a file")?;
        let (is_text, is_kept) = (kinds.contains("attr/text=auto eol=lf"), kinds.contains("attr/-text"));
        ensure!(is_text || is_kept, "no line ends for {line}");
        ensure!(!kinds.contains("crlf") && !kinds.contains("mixed"), "{line}");
    }
    Ok(())
}
