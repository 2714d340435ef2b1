//! JMeter's plans: what their reports count, and that JMeter's window would save them as they are.

use crate::support::*;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};
use tokio::process::Command;

fn folder() -> PathBuf {
    PathBuf::from("jmeter")
}

fn plans() -> Result<Vec<(String, String)>> {
    let mut plans = Vec::new();
    for file in fs::read_dir(folder())? {
        let path = file?.path();
        if path.extension().is_some_and(|e| e == "jmx") {
            plans.push((path.display().to_string(), fs::read_to_string(&path)?));
        }
    }
    ensure!(plans.len() >= 8, "only {} plans", plans.len());
    Ok(plans)
}

/// Otherwise its total counts the set-up and the results too.
fn counts_buyers_alone(plan: &str) -> Result<()> {
    let report = plan.lines().find(|line| line.contains("\"StatVisualizer\""));
    let report = report.context("no Aggregate Report")?;
    let depth = |line: &str| line.len() - line.trim_start().len();
    let group = plan.lines().find(|line| line.contains("<ThreadGroup "));
    let group = group.context("no thread group")?;
    ensure!(depth(report) > depth(group), "outside of its thread group");
    Ok(())
}

#[apply(test!)]
fn the_aggregate_report_counts_the_buyers_alone() -> Result<()> {
    for (name, plan) in plans()? {
        if plan.matches("<ThreadGroup ").count() == 1 {
            counts_buyers_alone(&plan).context(name)?;
            // The twin: the report beside the group.
            let (inside, report) = ("        <ResultCollector", "      <ResultCollector");
            let beside = plan.replace("      <ThreadGroup", "          <ThreadGroup");
            let beside = beside.replace(inside, report);
            caught(counts_buyers_alone(&beside), "outside of its thread group")?;
        }
    }
    Ok(())
}

async fn run(program: &str, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command.output().await.with_context(|| format!("{program}: `scripts/install jmeter` installs it"))
}

/// Has Maven lay out JMeter, and returns its folder.
async fn jmeter_home() -> Result<String> {
    let pom = folder().join("pom.xml").display().to_string();
    let goals = ["clean:clean@before", "jmeter:configure@configuration"];
    let maven = run("mvn", &["-f", &pom, "-q", goals[0], goals[1]]).await?;
    ensure!(maven.status.success(), "{}", String::from_utf8_lossy(&maven.stdout));
    let mut homes = Vec::new();
    for found in fs::read_dir(folder().join("../target/jmeter"))? {
        let home = found?.path().join("jmeter");
        if home.join("bin/ApacheJMeter-5.6.3.jar").exists() {
            homes.push(home.display().to_string());
        }
    }
    ensure!(homes.len() == 1, "one JMeter is wanted: {homes:?}");
    Ok(homes.remove(0))
}

/// The 90 % line of all samples, as the dashboard has it that these arguments of `java` make of these results.
async fn line_of_dashboard(arguments: &[&str], dashboard: &Path) -> Result<f64> {
    let made = run("java", arguments).await?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let statistics: serde_json::Value = serde_json::from_slice(&fs::read(dashboard.join("statistics.json"))?)?;
    statistics["Total"]["pct1ResTime"].as_f64().with_context(|| statistics.to_string())
}

#[apply(soak_test!)]
async fn a_report_is_of_all_samples() -> Result<()> {
    let home = jmeter_home().await?;
    let folder = tempfile::tempdir()?;
    // JMeter's window has the last 20,000 samples; the slow ones come before them.
    let lines = (0..30_000).map(|n| {
        let elapsed = if n < 10_000 { 200 } else { 30 };
        format!(
            "{},{elapsed},buy,200,OK,group 1-1,text,true,,10,10,1,1,http://localhost/,{elapsed},0,1\n",
            1_700_000_000_000_u64 + n
        )
    });
    let head = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,\
                sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect\n";
    let results = folder.path().join("results.csv");
    fs::write(&results, head.to_owned() + &lines.collect::<String>())?;
    let results = results.display().to_string();
    let summary = self::folder().join("Summary.java").display().to_string();
    let (ours, twin) = (folder.path().join("ours"), folder.path().join("twin"));
    let (into_ours, into_twin) = (ours.display().to_string(), twin.display().to_string());
    let ours = line_of_dashboard(&[&summary, "dashboard", &results, &into_ours, "target/jmeter"], &ours).await?;
    ensure!((ours - 200.0).abs() < 1.0, "the 90 % line: {ours}");
    // The twin: JMeter with its own default.
    let jar = format!("{home}/bin/ApacheJMeter-5.6.3.jar");
    // Its log would be left in the folder of whoever runs this.
    let log = folder.path().join("jmeter.log").display().to_string();
    let by_default = ["-Djava.awt.headless=true", "-jar", &jar, "-j", &log, "-g", &results, "-o", &into_twin];
    let twin = line_of_dashboard(&by_default, &twin).await?;
    ensure!((twin - 30.0).abs() < 1.0, "the 90 % line of the last samples: {twin}");
    Ok(())
}

#[apply(soak_test!)]
async fn a_plan_saved_from_the_window_is_unchanged() -> Result<()> {
    let home = &jmeter_home().await?;
    let jars = format!("{home}/bin/ApacheJMeter-5.6.3.jar:{home}/lib/*:{home}/lib/ext/*");
    let window = folder().join("Window.java").display().to_string();
    let saves = async |plans: &Path| {
        let plans = plans.display().to_string();
        run("java", &["-Djava.awt.headless=true", "-cp", &jars, &window, home, &plans]).await
    };
    let saved = saves(&folder()).await?;
    ensure!(saved.status.success(), "{}", String::from_utf8_lossy(&saved.stdout));
    // The twin: a plan that was written by hand.
    let by_hand = tempfile::tempdir()?;
    let (_, plan) = plans()?.remove(0);
    fs::write(by_hand.path().join("by-hand.jmx"), plan.replace("&apos;", "'"))?;
    let saved = saves(by_hand.path()).await?;
    ensure!(saved.status.code() == Some(1), "{}", String::from_utf8_lossy(&saved.stdout));
    Ok(())
}
