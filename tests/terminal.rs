//! The program in a terminal, in a pipe, and with an output that accepts nothing.

use crate::support::*;
use nix::{
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::File,
    io::Read,
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

/// Without a cluster: a wrong name or file is reported before anything is requested.
#[apply(test!)]
async fn command_line_mistakes_are_reported_before_measuring() -> Result<()> {
    let at = "--http http://127.0.0.1:1 --instance http://127.0.0.1:1";
    for (line, wanted) in [
        (format!("compare {at} --strategies nnone"), "'none'"),
        (format!("seckill {at} --strategies redis-rlok"), "'redis-rlock'"),
        ("course --lesson 2.33".to_owned(), "'2.3'"),
        ("course --lesson 99.9".to_owned(), "in all"),
        (format!("compare {at} --json /no/such/rows.json"), "no folder /no/such"),
        (format!("compare {at} --json /proc/rows.json"), "/proc/rows.json: "),
        (format!("compare {at}"), "http://127.0.0.1:1 does not answer"),
        ("lab fault pause 8100 --lab-json /no/such/lab.json".to_owned(), "--lab-json"),
    ] {
        let (code, words) = status_and_stderr(&oversell(&line).output().await?);
        ensure!(code == Some(2) && words.contains(wanted), "{line}: {code:?} {words}");
    }
    Ok(())
}

#[apply(test!)]
async fn doctor_names_what_a_lab_needs_and_where_it_is() -> Result<()> {
    // Free ports: the default ones may be in use by a developer's lab.
    let free = "doctor --http-port 0 --instances 0,0,0 --mysql-port 0 --redis-ports 0 --zookeeper-port 0";
    let folder = tempfile::tempdir()?;
    let doctor = || {
        let mut command = oversell(free);
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
        (
            format!(
                "--http-port 0 --instances 0 --mysql-port 0 --redis-ports 0 --zookeeper-port 0 --dir {}",
                strange.path().display()
            ),
            "was not made by a lab and is not empty".into(),
        ),
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

/// With a Chinese locale help, errors and missing programs are in Chinese; locales are looked up in their usual order.
#[apply(test!)]
async fn a_chinese_locale_gets_chinese_output() -> Result<()> {
    let shown = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned() + &status_and_stderr(output).1;
    let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    for (line, wanted) in [
        ("--help", "用法：oversell"),
        ("compare --help", "每个连接依次发多少个请求［默认 50］"),
        ("help lab fault", "实例 8100 拿着锁什么也不做"),
        ("compare --strategies nnone", "'none'？"),
        ("compare --thread 3", "'--threads'？"),
        ("compar", "没有 'compar' 这个命令"),
        ("compare --lab-json /no/such/lab.json", "没有实验环境在运行"),
        ("lab fault kill redis --lab-json /no/such/lab.json", "没有实验环境在运行"),
        ("lab --http-port 1 --instances 1", "端口 1 用了两次"),
        ("compare --http http://x --instance http://x --json /no/such/rows.json", "没有目录"),
        ("serve --set x", "必须写成 KEY=VALUE"),
        ("serve --set admin.token=hunter2", "请用环境变量 OVERSELL__ADMIN__TOKEN"),
        ("doctor", "实验环境要的程序"),
        ("compare --threads 0", "不小于 1，不大于 5000"),
        ("compare --duration x", "3s"),
        ("course --lesson 99.9", "（共 "),
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
        let english = oversell(line).env("LC_ALL", "C").env("LANG", "zh_CN.UTF-8").output().await?;
        ensure!(english.status == chinese.status && !shown(&english).chars().any(is_chinese), "{line}: {english:?}");
    }
    Ok(())
}

/// Output in a terminal of this width.
async fn in_a_terminal(columns: u16, line: &str, variables: &[(&str, &str)]) -> Result<String> {
    let size = Winsize { ws_row: if columns == 0 { 0 } else { 24 }, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&size, None)?;
    let mut command = oversell(line);
    command
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::from(pty.slave))
        .stderr(Stdio::null());
    let mut running = command.spawn()?;
    // Only the command has its side of the terminal open, so reading ends with the command.
    drop(command);
    let mut terminal = File::from(pty.master);
    let reading = tokio::task::spawn_blocking(move || {
        let (mut shown, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = terminal.read(&mut part) {
            shown.extend_from_slice(&part[..read]);
        }
        String::from_utf8_lossy(&shown).replace('\r', "")
    });
    within_limit("its end", running.wait()).await??;
    Ok(reading.await?)
}

fn shop(at: &oversell_lab::addresses::Addresses) -> String {
    format!(
        "compare --http {} --instance {} --strategies none,single-update --targets one --threads 4 --loops 5",
        at.http, at.instances[0].url
    )
}

/// Also where the terminal reports no width.
#[apply(test!)]
async fn the_answer_comes_last_and_fits_the_terminal() -> Result<()> {
    let lab = labs::full_lab().await?;
    let line = shop(lab.addresses());
    for (columns, variable, fits) in [(0, ("NO_COLOR", "1"), 80), (60, ("TERM", "dumb"), 60), (80, ("LANG", ""), 0)] {
        let shown = in_a_terminal(columns, &line, &[variable]).await?;
        let lines: Vec<_> = shown.lines().collect();
        let last = lines.iter().rposition(|line| line.contains("single-update ["));
        let table = lines.iter().rposition(|line| line.contains("───"));
        ensure!(table.is_some() && last > table, "{columns}: {shown}");
        let coloured = shown.contains("\u{1b}[");
        ensure!(coloured == (fits == 0) && shown.contains("as promised"), "{variable:?}: {shown:?}");
        ensure!(coloured || lines.iter().all(|line| line.chars().count() <= fits), "{columns}: {shown}");
        ensure!(shown.contains("verdict") && !shown.contains(", \n"), "{shown}");
        ensure!(!shown.contains("narrow:") || !shown.contains("from"), "{shown}");
    }
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Rows go to stdout and all else to stderr, without an English heading, and with a line for each run, since that is no terminal.
#[apply(test!)]
async fn json_to_stdout_is_json_alone_and_the_rest_is_chinese() -> Result<()> {
    let lab = labs::full_lab().await?;
    let line = shop(lab.addresses()) + " --json -";
    let output = oversell(&line).env("LC_ALL", "zh_CN.UTF-8").env("LANGUAGE", "").output().await?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(found["rows"].as_array().map(Vec::len) == Some(2), "{found}");
    let (_, shown) = status_and_stderr(&output);
    for wanted in ["2/2", "一个实例的上限", "策略", "结论", "如约", "分毫不差", "字节"] {
        ensure!(shown.contains(wanted), "{wanted} is not in {shown}");
    }
    for english in ["strategy", "verdict", "exact", "promised", "ceiling", "bytes", "cores", " on one"] {
        ensure!(!shown.contains(english), "{english} is in {shown}");
    }
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
    let pid = running.id().context("it has ended")?;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT)?;
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
