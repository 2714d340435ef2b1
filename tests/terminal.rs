//! The program in a terminal, in a pipe, and with an output that accepts nothing.

use crate::support::*;
use nix::sys::signal::Signal;
use std::{
    fs::File,
    process::{Output, Stdio},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    process::Command,
};

fn oversell(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oversell"));
    command.args(line.split_whitespace()).env("LC_ALL", "C.UTF-8").kill_on_drop(true);
    command
}

/// Exit status and stderr.
fn status_and_stderr(output: &Output) -> (Option<i32>, String) {
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), words)
}

/// Free ports: the default ones may be in use by a developer's lab.
const FREE: &str = "--http-port 0 --instances 0,0,0 --mysql-port 0 --redis-ports 0 --zookeeper-port 0";
/// A cluster that does not answer: a wrong name or file is reported before anything is requested.
const NOBODY: &str = "--http http://127.0.0.1:1 --instance http://127.0.0.1:1";

/// A full disk, and a reader that has gone.
#[apply(test!)]
async fn a_stdout_that_takes_no_more_ends_a_command_with_a_line() -> Result<()> {
    // `output` would pipe stdout.
    let ended = async |line: &str, stdout: Stdio| {
        let mut command = oversell(line);
        let running = command.stdout(stdout).stderr(Stdio::piped()).spawn()?;
        running.wait_with_output().await
    };
    let full = File::options().write(true).open("/dev/full")?;
    let full = ended("completions bash", full.into()).await?;
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let closed = ended("doctor", writer.into()).await?;
    for (output, why) in [(full, "No space left"), (closed, "Broken pipe")] {
        let (code, words) = status_and_stderr(&output);
        ensure!(code == Some(1) && words.contains(why) && !words.contains("panicked"), "{code:?} {words}");
    }
    Ok(())
}

#[apply(test!)]
async fn doctor_names_what_a_lab_needs_and_where_it_is() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let doctor = || {
        let mut command = oversell(&format!("doctor {FREE}"));
        command.arg("--dir").arg(folder.path());
        command
    };
    let output = doctor().output().await?;
    let shown = String::from_utf8_lossy(&output.stdout);
    for wanted in ["mariadbd", "redis-server", "nginx", "setpriv", "java", "ports of the lab", "instance 3", "docker compose"] {
        ensure!(shown.contains(wanted), "{wanted} is not in {shown}");
    }
    ensure!(output.status.success(), "{shown} {}", status_and_stderr(&output).1);
    // A machine without these programs gets the package names to type.
    let bare = doctor().env("PATH", "/nowhere").output().await?;
    let (_, words) = status_and_stderr(&bare);
    let shown = String::from_utf8_lossy(&bare.stdout);
    ensure!(
        shown.contains("MISSING  redis-server") && words.contains("apt-get install") && words.contains("redis-server"),
        "{shown} {words}"
    );
    Ok(())
}

#[apply(test!)]
async fn doctor_says_no_where_lab_says_no() -> Result<()> {
    let stranger = TcpListener::bind(("127.0.0.1", 0)).await?;
    let taken = stranger.local_addr()?.port();
    let strange = tempfile::tempdir()?;
    std::fs::write(strange.path().join("mine"), "")?;
    for (options, why) in [
        (
            format!("--http-port 0 --instances 0,{taken} --mysql-port 0 --redis-ports 0 --zookeeper-port 0"),
            format!("{taken} for instance 2 is occupied"),
        ),
        ("--http-port 1 --mysql-port 1".into(), "port 1 is asked for twice".into()),
        (format!("{FREE} --dir {}", strange.path().display()), "was not made by a lab and is not empty".into()),
    ] {
        for command in ["doctor", "lab"] {
            let output = oversell(&format!("{command} {options}")).output().await?;
            let (code, words) = status_and_stderr(&output);
            let shown = String::from_utf8_lossy(&output.stdout);
            ensure!(code == Some(2), "{command} {options}: {code:?} {shown} {words}");
            ensure!(format!("{shown}{words}").contains(&why), "{command} {options}: {shown} {words}");
        }
    }
    Ok(())
}

/// Help, mistakes and missing programs, with an English locale and with a Chinese one; locales are looked up in their usual order.
#[apply(test!)]
async fn a_mistake_is_reported_in_the_language_of_the_locale() -> Result<()> {
    for (line, code, in_english, in_chinese) in [
        ("--help", 0, "Usage: oversell", "用法：oversell"),
        ("compare --help", 0, "[default: 50]", "每个连接依次发多少个请求［默认 50］"),
        ("help lab fault", 0, "8100", "实例 8100 拿着锁什么也不做"),
        (&format!("doctor {FREE}"), 0, "redis-server", "实验环境要的程序"),
        ("compar", 2, "'compar'", "没有 'compar' 这个命令"),
        ("compare --thread 3", 2, "'--threads'", "'--threads'？"),
        ("compare --threads 0", 2, "1..=5000", "不小于 1，不大于 5000"),
        ("compare --duration x", 2, "'x'", "3s"),
        (&format!("compare {NOBODY} --strategies nnone"), 2, "'none'", "'none'？"),
        (&format!("seckill {NOBODY} --strategies redis-rlok"), 2, "'redis-rlock'", "'redis-rlock'？"),
        (&format!("compare {NOBODY} --json /no/such/rows.json"), 2, "no folder /no/such", "没有目录"),
        (&format!("compare {NOBODY}"), 2, "http://127.0.0.1:1 does not answer", "http://127.0.0.1:1"),
        ("compare --lab-json /no/such/lab.json", 2, "no lab is running", "没有实验环境在运行"),
        ("course --lesson 2.33", 2, "'2.3'", "'2.3'？"),
        ("course --lesson 99.9", 2, "in all", "（共 "),
        ("lab --http-port 1 --instances 1", 2, "port 1 is asked for twice", "端口 1 用了两次"),
        ("lab fault kill redis --lab-json /no/such/lab.json", 2, "--lab-json", "没有实验环境在运行"),
        ("serve --set x", 2, "KEY=VALUE", "必须写成 KEY=VALUE"),
        ("serve --set admin.token=hunter2", 2, "OVERSELL__ADMIN__TOKEN", "请用环境变量 OVERSELL__ADMIN__TOKEN"),
    ] {
        let mut chinese = oversell(line);
        chinese.envs([("LC_ALL", ""), ("LC_MESSAGES", ""), ("LANGUAGE", ""), ("LANG", "zh_CN.UTF-8")]);
        let mut english = oversell(line);
        english.env("LC_ALL", "C").env("LANG", "zh_CN.UTF-8");
        for (mut command, wanted, chinese) in [(english, in_english, false), (chinese, in_chinese, true)] {
            let output = command.output().await?;
            let (status, words) = status_and_stderr(&output);
            let shown = String::from_utf8_lossy(&output.stdout) + &*words;
            let is_chinese = shown.contains(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            ensure!(status == Some(code) && shown.contains(wanted), "{line}: {status:?} {shown}");
            ensure!(chinese || !is_chinese, "{line}: {shown}");
        }
    }
    Ok(())
}

fn shop(at: &oversell_lab::addresses::Addresses) -> String {
    format!(
        "compare --http {} --instance {} --strategies none,single-update --targets one --threads 4 --loops 5",
        at.http, at.instances[0].url
    )
}

/// Rows go to stdout and all else to stderr, with a line for each run, since that is no terminal.
#[apply(test!)]
async fn json_to_stdout_is_json_alone_and_the_rest_is_chinese() -> Result<()> {
    let lab = labs::full_lab().await?;
    let line = shop(lab.addresses()) + " --json -";
    let output = oversell(&line).env("LC_ALL", "zh_CN.UTF-8").env("LANGUAGE", "").output().await?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(found["rows"].as_array().map(Vec::len) == Some(2), "{found}");
    let (_, shown) = status_and_stderr(&output);
    ensure!(shown.contains("2/2") && shown.contains("分毫不差"), "{shown}");
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Ctrl-C during a run: a partial run is not reported.
#[apply(test!)]
async fn a_run_that_is_cut_short_has_no_verdict() -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses();
    let line = format!(
        "compare --http {} --instance {} --strategies single-update --targets one --threads 2 --loops 50 --hold-ms 200",
        at.http, at.instances[0].url
    );
    let sold = async || {
        let metrics = http::ask(format!("{}/metrics", at.instances[0].url)).await?.1;
        let sold = metrics.lines().find_map(|line| line.strip_prefix(r#"oversell_sold_total{strategy="single-update"} "#));
        anyhow::Ok(sold.map_or(Ok(0), str::parse::<u64>)?)
    };
    let before = sold().await?;
    let mut running = oversell(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(running.stdout.take().context("stdout")?).lines();
    let ceiling = async {
        while !lines.next_line().await?.context("it has ended")?.starts_with("ceiling of one") {}
        anyhow::Ok(())
    };
    within_limit("its ceiling", ceiling).await??;
    wait_until("it sells", async || Ok(sold().await? > before)).await?;
    labs::send_signal(running.id(), Signal::SIGINT)?;
    let mut shown = String::new();
    while let Some(line) = within_limit("its end", lines.next_line()).await?? {
        shown += &line;
    }
    let (code, words) = status_and_stderr(&within_limit("its end", running.wait_with_output()).await??);
    let is_told = words.contains("cut short") && words.contains("after 0 whole runs; single-update on one");
    let has_verdict = ["verdict", "exact", "✓"].iter().any(|word| shown.contains(word));
    ensure!(code == Some(130) && is_told && !has_verdict, "{code:?} {words} {shown}");
    labs::keep_for_next_test(lab);
    Ok(())
}
