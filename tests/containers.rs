//! The compose file, as a text: Docker is not needed to see that it keeps to its rules.

use crate::support::*;

const COMPOSE: &str = include_str!("../docker-compose.yml");
const DOCKERFILE: &str = include_str!("../Dockerfile");

/// What stands behind this word, in each line that begins with it.
fn behind<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let lines = text.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_prefix(word))
        .map(str::trim)
        .collect()
}

/// An image is built once and named by its whole version; a server behind nginx is asked for by its name again and again.
fn keeps_the_rules(compose: &str, dockerfile: &str) -> Result<()> {
    let builds = behind(compose, "build:").len();
    ensure!(builds == 1, "{builds} services build the image");
    let images = behind(compose, "image:").into_iter();
    let images = images.chain(behind(dockerfile, "FROM"));
    let mut pinned = 0;
    for image in images.filter(|image| *image != "oversell") {
        let tag = image.rsplit(':').next().unwrap_or_default();
        let version = tag.trim_start_matches('v').split(['-', '}', ' ']).next();
        let parts: Vec<_> = version.unwrap_or_default().split('.').collect();
        let numbers = parts.iter().all(|part| part.parse::<u32>().is_ok());
        ensure!(numbers && parts.len() >= 2, "{image} floats");
        pinned += 1;
    }
    ensure!(pinned >= 8, "only {pinned} images");
    let servers = compose.split("server app-").skip(1);
    for server in servers {
        let server = server.split(';').next().unwrap_or_default();
        ensure!(server.contains(" resolve"), "{server} keeps its address");
    }
    Ok(())
}

#[apply(test!)]
fn the_containers_are_pinned_built_once_and_found_again() -> Result<()> {
    keeps_the_rules(COMPOSE, DOCKERFILE)?;
    for (from, to, by) in [
        ("redis:7.2.11", "redis:latest", "floats"),
        ("resolve max_fails", "max_fails", "keeps its address"),
        ("profiles: [small]", "build: .", "build the image"),
    ] {
        caught(keeps_the_rules(&COMPOSE.replace(from, to), DOCKERFILE), by)?;
    }
    Ok(())
}
