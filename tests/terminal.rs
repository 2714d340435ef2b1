//! The program in a terminal, in a pipe, and where what it is to write to takes nothing.

use crate::support::*;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::File,
    process::{Output, Stdio},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

fn oversell(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oversell"));
    command
        .args(line.split_whitespace())
        .env("LC_ALL", "C.UTF-8")
        .kill_on_drop(true);
    command
}

/// What it exits with, and what it says on stderr.
fn said(output: &Output) -> (Option<i32>, String) {
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), words)
}

/// A full disk, and a reader that has gone.
#[apply(test!)]
async fn a_stdout_that_takes_no_more_ends_a_command_with_a_line() -> Result<()> {
    // `output` would have a pipe of its own.
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
        let (code, words) = said(&output);
        ensure!(
            code == Some(1) && words.contains(why) && !words.contains("panicked"),
            "{code:?} {words}"
        );
    }
    Ok(())
}

/// No cluster is there, and none is asked: a wrong name or file comes first.
#[apply(test!)]
async fn what_is_wrong_on_the_command_line_is_said_before_anything_is_measured() -> Result<()> {
    let at = "--http http://127.0.0.1:1 --instance http://127.0.0.1:1";
    for (line, wanted) in [
        (format!("compare {at} --strategies nnone"), "'none'"),
        (
            format!("seckill {at} --strategies redis-rlok"),
            "'redis-rlock'",
        ),
        ("course --lesson 2.33".to_owned(), "'2.3'"),
        (
            format!("compare {at} --json /no/such/rows.json"),
            "no folder /no/such",
        ),
        (
            format!("compare {at} --json /proc/rows.json"),
            "/proc/rows.json: ",
        ),
        (
            format!("compare {at}"),
            "http://127.0.0.1:1 does not answer",
        ),
        (
            "lab fault pause 8100 --lab-json /no/such/lab.json".to_owned(),
            "--lab-json",
        ),
    ] {
        let (code, words) = said(&oversell(&line).output().await?);
        ensure!(
            code == Some(2) && words.contains(wanted),
            "{line}: {code:?} {words}"
        );
    }
    Ok(())
}

/// Its rows go to stdout, and all else to stderr: with a line for each run, since that is no terminal.
#[apply(test!)]
async fn json_to_stdout_is_json_alone_and_each_run_is_told() -> Result<()> {
    let lab = labs::whole().await?;
    let at = lab.addresses();
    let line = format!(
        "compare --http {} --instance {} --strategies none,single-update --threads 4 --loops 5 --json -",
        at.http, at.instances[0].url
    );
    let output = oversell(&line).output().await?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(found["rows"].as_array().map(Vec::len) == Some(4), "{found}");
    let (_, words) = said(&output);
    for wanted in ["1/4  none on one", "4/4  single-update on three", "verdict"] {
        ensure!(words.contains(wanted), "{wanted} is not in {words}");
    }
    labs::hand_on(lab);
    Ok(())
}

/// Ctrl-C in the middle of a run: nothing is said of a part of it.
#[apply(test!)]
async fn a_run_that_is_cut_short_has_no_verdict() -> Result<()> {
    let (shown, words) = cut_short("ceiling of one", true).await?;
    ensure!(
        !shown.contains("verdict") && words.contains("after 0 whole runs; single-update on one"),
        "{words} {shown}"
    );
    Ok(())
}

/// And one in the middle of its ceiling has none, and no table.
#[apply(test!)]
async fn a_ceiling_that_is_cut_short_is_not_told() -> Result<()> {
    let (shown, words) = cut_short("oversell ", false).await?;
    ensure!(
        !shown.contains("ceiling") && !shown.contains("verdict") && words.ends_with("measured"),
        "{words} {shown}"
    );
    Ok(())
}

/// What a comparison says on stdout after a line and a signal, in the middle of its run or before; and on stderr.
async fn cut_short(after: &str, is_run: bool) -> Result<(String, String)> {
    let lab = labs::whole().await?;
    let at = lab.addresses();
    let line = format!(
        "compare --http {} --instance {} --strategies single-update --targets one --threads 2 --loops 50 --hold-ms 200",
        at.http, at.instances[0].url
    );
    let mut running = oversell(&line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(running.stdout.take().context("stdout")?).lines();
    while let Some(line) = soon("its beginning", lines.next_line()).await?? {
        if line.starts_with(after) {
            break;
        }
    }
    if is_run {
        until("requests are under way", async || {
            let url = format!("{}/metrics", at.instances[0].url);
            let metrics = http::ask(url).await?.1;
            Ok(metrics.contains(r#"oversell_waiters{strategy="single-update"}"#))
        })
        .await?;
    }
    let pid = running.id().context("it has ended")?;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT)?;
    let mut shown = String::new();
    while let Some(line) = soon("its end", lines.next_line()).await?? {
        shown += &line;
    }
    let (code, words) = said(&soon("its end", running.wait_with_output()).await??);
    ensure!(
        code == Some(130)
            && words.contains("cut short")
            && !shown.contains("exact")
            && !shown.contains('✓'),
        "{code:?} {words} {shown}"
    );
    labs::hand_on(lab);
    Ok((shown, words.trim_end().to_owned()))
}

#[apply(test!)]
async fn doctor_names_what_a_lab_needs_and_where_it_is() -> Result<()> {
    let output = oversell("doctor").output().await?;
    let shown = String::from_utf8_lossy(&output.stdout);
    for wanted in [
        "mariadbd",
        "redis-server",
        "nginx",
        "setpriv",
        "java",
        "ports of `oversell lab`",
    ] {
        ensure!(shown.contains(wanted), "{wanted} is not in {shown}");
    }
    ensure!(output.status.success(), "{shown}");
    // A machine that has none of them: the packages are named, as they are typed.
    let bare = oversell("doctor").env("PATH", "/nowhere").output().await?;
    let (_, words) = said(&bare);
    let shown = String::from_utf8_lossy(&bare.stdout);
    ensure!(
        shown.contains("MISSING  redis-server")
            && words.contains("apt-get install")
            && words.contains("redis-server"),
        "{shown} {words}"
    );
    Ok(())
}

/// Where the locale is Chinese, help, mistakes and what is missing are said in Chinese; in the order in which a locale is looked for.
#[apply(test!)]
async fn a_chinese_locale_is_spoken_to_in_chinese() -> Result<()> {
    let shown =
        |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned() + &said(output).1;
    let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    for (line, wanted) in [
        ("--help", "用法：oversell"),
        ("compare --help", "每个连接依次发多少个请求［默认 50］"),
        ("help lab fault", "实例 8100 拿着锁什么也不做"),
        ("compare --strategies nnone", "'none'？"),
        ("compare --thread 3", "'--threads'？"),
        ("compar", "没有 'compar' 这个命令"),
        ("compare --lab-json /no/such/lab.json", "没有实验环境在运行"),
        (
            "lab fault kill redis --lab-json /no/such/lab.json",
            "没有实验环境在运行",
        ),
        ("lab --http-port 1 --instances 1", "端口 1 用了两次"),
        (
            "compare --http x --instance x --json /no/such/rows.json",
            "没有目录",
        ),
        ("serve --set x", "必须写成 KEY=VALUE"),
        ("doctor", "实验环境要的程序"),
    ] {
        let chinese = oversell(line)
            .env("LC_ALL", "")
            .env("LC_MESSAGES", "")
            .env("LANGUAGE", "")
            .env("LANG", "zh_CN.UTF-8")
            .output()
            .await?;
        let words = shown(&chinese);
        ensure!(words.contains(wanted), "{line}: {words}");
        let english = oversell(line)
            .env("LC_ALL", "C")
            .env("LANG", "zh_CN.UTF-8")
            .output()
            .await?;
        ensure!(
            english.status == chinese.status && !shown(&english).chars().any(is_chinese),
            "{line}: {english:?}"
        );
    }
    Ok(())
}
