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

/// Rows go to stdout and all else to stderr, with a line for each run, since that is no terminal.
#[apply(test!)]
async fn json_to_stdout_is_json_alone_and_each_run_is_told() -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses();
    let line = format!(
        "compare --http {} --instance {} --strategies none,single-update --threads 4 --loops 5 --json -",
        at.http, at.instances[0].url
    );
    let output = oversell(&line).output().await?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(found["rows"].as_array().map(Vec::len) == Some(4), "{found}");
    let (_, words) = status_and_stderr(&output);
    for wanted in ["1/4  none on one", "4/4  single-update on three", "verdict"] {
        ensure!(words.contains(wanted), "{wanted} is not in {words}");
    }
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Ctrl-C during a run: a partial run is not reported.
#[apply(test!)]
async fn a_run_that_is_cut_short_has_no_verdict() -> Result<()> {
    let (shown, words) = cut_short("ceiling of one", true).await?;
    ensure!(
        !shown.contains("verdict") && words.contains("after 0 whole runs; single-update on one"),
        "{words} {shown}"
    );
    Ok(())
}

/// Ctrl-C during the ceiling prints no table.
#[apply(test!)]
async fn an_interrupted_ceiling_is_not_reported() -> Result<()> {
    let (shown, words) = cut_short("oversell ", false).await?;
    ensure!(!shown.contains("ceiling") && !shown.contains("verdict") && words.ends_with("measured"), "{words} {shown}");
    Ok(())
}

/// Stdout and stderr of a comparison that a signal interrupts, during its run or before.
async fn cut_short(after: &str, is_run: bool) -> Result<(String, String)> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses();
    let line = format!(
        "compare --http {} --instance {} --strategies single-update --targets one --threads 2 --loops 50 --hold-ms 200",
        at.http, at.instances[0].url
    );
    let mut running = oversell(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(running.stdout.take().context("stdout")?).lines();
    while let Some(line) = within_limit("its beginning", lines.next_line()).await?? {
        if line.starts_with(after) {
            break;
        }
    }
    if is_run {
        wait_until("requests are under way", async || {
            let url = format!("{}/metrics", at.instances[0].url);
            let metrics = http::ask(url).await?.1;
            Ok(metrics.contains(r#"oversell_waiters{strategy="single-update"}"#))
        })
        .await?;
    }
    let pid = running.id().context("it has ended")?;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT)?;
    let mut shown = String::new();
    while let Some(line) = within_limit("its end", lines.next_line()).await?? {
        shown += &line;
    }
    let (code, words) = status_and_stderr(&within_limit("its end", running.wait_with_output()).await??);
    ensure!(
        code == Some(130) && words.contains("cut short") && !shown.contains("exact") && !shown.contains('✓'),
        "{code:?} {words} {shown}"
    );
    labs::keep_for_next_test(lab);
    Ok((shown, words.trim_end().to_owned()))
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
    for wanted in
        ["mariadbd", "redis-server", "nginx", "setpriv", "java", "ports of the lab", "instance 3", "docker compose"]
    {
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

/// A terminal that reports no width.
#[apply(test!)]
async fn the_answer_comes_last_and_fits_the_terminal() -> Result<()> {
    let lab = labs::full_lab().await?;
    let line = shop(lab.addresses());
    for (columns, fits) in [(0, 80), (60, 60), (80, 80)] {
        let shown = in_a_terminal(columns, &line, &[("NO_COLOR", "1")]).await?;
        let lines: Vec<_> = shown.lines().collect();
        let last = lines.iter().rposition(|line| line.contains("single-update ["));
        let table = lines.iter().rposition(|line| line.contains("───"));
        ensure!(table.is_some() && last > table, "{columns}: {shown}");
        ensure!(lines.iter().all(|line| line.chars().count() <= fits), "{columns}: {shown}");
        ensure!(shown.contains("verdict") && !shown.contains(", \n"), "{shown}");
        ensure!(!shown.contains("narrow:") || !shown.contains("from"), "{shown}");
    }
    labs::keep_for_next_test(lab);
    Ok(())
}

#[apply(test!)]
async fn marks_are_coloured_where_the_terminal_has_colours() -> Result<()> {
    let lab = labs::full_lab().await?;
    let line = shop(lab.addresses());
    for (variables, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false)] {
        let shown = in_a_terminal(80, &line, variables).await?;
        ensure!(shown.contains("\u{1b}[") == coloured && shown.contains("as promised"), "{variables:?}: {shown:?}");
    }
    labs::keep_for_next_test(lab);
    Ok(())
}

#[apply(test!)]
async fn a_comparison_in_chinese_has_no_english_headings() -> Result<()> {
    let lab = labs::full_lab().await?;
    let output = oversell(&shop(lab.addresses())).env("LC_ALL", "zh_CN.UTF-8").env("LANGUAGE", "").output().await?;
    let (_, words) = status_and_stderr(&output);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &words;
    for wanted in ["一个实例的上限", "策略", "结论", "如约", "分毫不差", "字节"] {
        ensure!(shown.contains(wanted), "{wanted} is not in {shown}");
    }
    for english in ["strategy", "verdict", "exact", "promised", "ceiling", "bytes", "cores", " on one"] {
        ensure!(!shown.contains(english), "{english} is in {shown}");
    }
    labs::keep_for_next_test(lab);
    Ok(())
}

/// One line for a reproduced claim, and the totals at the end.
#[apply(test!)]
async fn the_course_ends_with_its_count() -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses();
    let line = format!("course --http {} --instance {} --lesson 1.3", at.http, at.instances[0].url);
    let output = oversell(&line).output().await?;
    let shown = String::from_utf8_lossy(&output.stdout);
    let last = shown.lines().last().unwrap_or_default();
    ensure!(last.contains("1 claims: 1 reproduced") && last.starts_with('✓'), "{shown}");
    ensure!(shown.contains("PUT '{") && !shown.contains("-H"), "{shown}");
    labs::keep_for_next_test(lab);
    Ok(())
}

#[apply(test!)]
async fn a_mistyped_lesson_is_answered_with_the_nearest() -> Result<()> {
    let output = oversell("course --lesson 99.9").output().await?;
    let (code, words) = status_and_stderr(&output);
    ensure!(code == Some(2) && words.contains("in all") && words.len() < 500, "{words}");
    Ok(())
}

/// Help is wrapped once, and examples are never broken.
#[apply(test!)]
async fn help_fits_the_terminal_and_keeps_its_examples() -> Result<()> {
    for command in ["compare", "course", "seckill", "faults", "lab", "bench"] {
        let line = format!("{command} --help");
        let shown = in_a_terminal(80, &line, &[("NO_COLOR", "1")]).await?;
        let below = shown.split("Examples:").nth(1).context("no examples")?;
        for line in below.lines() {
            let is_command = line.starts_with("  oversell ");
            ensure!(is_command || line.chars().count() <= 80, "{line}");
        }
        // A short line is the last of its paragraph.
        let (_, paragraphs) = below.split_once("\n\n").context("no paragraphs")?;
        let lines: Vec<_> = paragraphs.lines().collect();
        for pair in lines.windows(2).filter(|pair| !pair[1].is_empty()) {
            let next = pair[1].split(' ').next().unwrap_or_default();
            let fits = pair[0].chars().count() + 1 + next.chars().count() <= 80;
            ensure!(!fits || pair[0].is_empty(), "{command}: {pair:?}");
        }
    }
    Ok(())
}
