//! The library's locks in Redis beside rslock, redlock-rs and redis-py, on a Redis of its own: `make lockbench`.
//!
//! Absolute figures of a shared machine mean little, so each rate is a ratio to the bare scripts of the same round: the Lua
//! of acquire and release, sent by one client that nobody disturbs. All libraries do the same work in turn, in processes of
//! their own, with the settings that they come with. Nothing here fails for a rate; what a lock must cost in round trips and
//! allocations is asserted by `tests/cost`.
//!
//! In reading order: `scene.rs` lists what is measured, `client.rs` gives each library the same methods, `worker.rs` is the
//! process that uses one, `counts.rs` counts round trips and allocations, `table.rs` prints.

mod client;
mod counts;
mod scene;
mod table;
mod worker;

use anyhow::{Context, Result};
use counts::RoundTrips;
use futures::future::try_join_all;
use oversell_lab::{
    clients::peer::Peer,
    lab::{Lab, Options, Part},
};
use scene::{Library, Measurement, PROCESSES, Scene};
use std::{collections::BTreeMap, env, time::Duration};
use table::Figures;
use tokio::process::Command;

/// How often each scene is measured.
const ROUNDS: usize = 5;

/// A scene that takes longer hangs: redis-py serves 100 threads in seconds.
const SCENE_TIMEOUT: Duration = Duration::from_secs(120);

/// The processes of one library.
struct LibraryProcesses {
    library: Library,
    processes: Vec<Peer>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [worker, library, url] = &arguments[..]
        && worker == "worker"
    {
        return worker::run(library.parse()?, url).await;
    }
    // Cargo adds `--bench`; a number is how many rounds.
    let rounds = arguments.iter().find_map(|word| word.parse().ok());
    let lab = Lab::start(Options {
        without: vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx],
        redis_ports: vec![0],
        ..Options::default()
    });
    let lab = lab.await?;
    let figures = measure(lab.addresses().first_redis(), rounds.unwrap_or(ROUNDS)).await;
    lab.stop().await;
    figures?.print();
    Ok(())
}

async fn measure(url: &str, rounds: usize) -> Result<Figures> {
    let mut sides = Vec::new();
    for library in Library::ALL {
        match library.why_missing() {
            Some(why) => eprintln!("{library} is left out: {why}"),
            None => sides.push(LibraryProcesses::start(library, url).await?),
        }
    }
    let mut rates = BTreeMap::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for scene in Scene::all() {
            for side in sides.iter().filter(|side| scene.has(side.library)) {
                let rate = side.play(scene).await?.rate();
                let key = (scene, side.library);
                rates.entry(key).or_insert_with(Vec::new).push(rate);
            }
        }
    }
    // Apart from the rates: whoever monitors Redis slows it down.
    let mut costs = BTreeMap::new();
    for scene in Scene::counted() {
        for side in sides.iter().filter(|side| scene.has(side.library)) {
            let begun = RoundTrips::begin(url).await?;
            let answer = side.play(scene).await?;
            let costs_of_one = answer.costs(begun.end().await?, side.library);
            costs.insert((scene, side.library), costs_of_one);
        }
    }
    Ok(Figures { rates, costs })
}

impl LibraryProcesses {
    async fn start(library: Library, url: &str) -> Result<Self> {
        let starting = (0..PROCESSES).map(|number| async move {
            let mut program = match library {
                Library::RedisPy => library.python(),
                _ => {
                    let mut own = Command::new(env::current_exe()?);
                    own.arg("worker").arg(library.to_string());
                    own
                }
            };
            program.arg(url);
            let log = env::temp_dir().join(format!("oversell-bench-{library}-{number}.log"));
            Ok::<_, anyhow::Error>(Peer::start(library, program, &log).await?)
        });
        let processes = try_join_all(starting).await?;
        Ok(Self { library, processes })
    }

    /// Does all of the scene once.
    async fn play(&self, scene: Scene) -> Result<Measurement> {
        let commands = scene.commands();
        // All are sent before any is waited for.
        let pending: Vec<_> =
            self.processes.iter().zip(commands).map(|(process, command)| process.send_command("main", command)).collect();
        let answers = pending.into_iter().map(|answer| async {
            let answer = answer.wait_at_most(SCENE_TIMEOUT).await?;
            answer.parse().with_context(|| answer)
        });
        let answers: Vec<Measurement> = try_join_all(answers).await?;
        Ok(answers.into_iter().fold(Measurement::default(), Measurement::beside))
    }
}
