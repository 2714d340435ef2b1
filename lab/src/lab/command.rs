//! `oversell lab`.

use super::{
    Lab, Options,
    fault::{self, ControlRequest},
    folder::write_atomically,
    link::authority,
    redis,
};
use crate::{
    addresses::{Addresses, Token},
    terminal::{
        chinese::{localized, pad_to_width},
        failure::{Failure, unusable},
        stdout::{print_to_stderr, say},
    },
};
use futures::StreamExt;
use qrcode::{QrCode, render::unicode::Dense1x2};
use std::{
    future::pending,
    path::PathBuf,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long a command may take to print its result after a signal.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);

/// Limit of the lines that wait for a reader of stdout; further lines are dropped and counted.
const MAX_UNPRINTED: usize = 1000;

const LABEL_WIDTH: usize = 14;

const EXAMPLES: &str = "\
Examples:
  oversell lab
  oversell lab --http-port 9080 --instances 9000,9100
  oversell lab --zookeeper 3
  oversell lab --galera 3 --writers each   three MariaDB nodes as one cluster, and each instance writes to its own
  oversell lab --sentinels 3               the main Redis has two replicas; the instances ask three Sentinels who leads
  oversell lab --strategy redis-lock       what /check/lock does: a JMeter plan of your own knows only that path
  oversell lab --class              a class of forty: phones come in by a code, links can be cut, the teacher has the token
  oversell lab --lan                the students' phones take part; prints the token for what they may not do
  oversell lab --dir /tmp/lab --json /tmp/addresses.json
  oversell lab fault pause 8100     while a lab runs: see `oversell lab fault --help`

Everything listens on 127.0.0.1 only, but for nginx with --lan. Each start begins with fresh data; logs stay in the folder until the next start.
A port may be 0: then a free one is taken.";

/// Starts MariaDB, five Redis nodes, ZooKeeper, three instances and nginx on loopback, until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
    /// Write the addresses to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Args {
    /// The same with one etcd, if the strategy that sells by `/check/lock` needs it.
    pub fn with_etcd_if(mut self, strategy_needs_it: impl Fn(&str) -> bool) -> Self {
        if self.options.strategy.as_deref().is_some_and(strategy_needs_it) {
            self.options.etcd = self.options.etcd.max(1);
        }
        self
    }
}

/// What a command needs of a lab of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// How many etcd nodes.
    pub etcd: u16,
    /// How often the last instance is started again before the command runs, to measure how long that takes.
    pub starts: usize,
    /// Whether it can be broken: it accepts faults, has links, and its main Redis has a replica.
    pub breakable: bool,
}

// What to do with a running lab; without one of these, a lab is started.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Fault(fault::Args),
}

/// Sends a fault to a running lab; or, without a subcommand, starts a lab and serves faults until `stop`.
pub async fn run(args: Args, stop: CancellationToken) -> Result<(), Failure> {
    if let Some(Command::Fault(fault)) = args.command {
        return tokio::select! {
            done = fault::run(fault) => done,
            () = stop.cancelled() => Err(Failure::Interrupted(localized!(
                "被信号打断；故障可能已经注入",
                "cut short by a signal; the fault may have been injected"
            ))),
        };
    }
    let (console, mut lines) = mpsc::unbounded_channel();
    let (control, mut requests) = fault::listen().await?;
    let options = Options { console: Some(console), control: Some(control), progress: true, ..args.options.clone().for_class() };
    let lan = options.lan;
    let mut lab = start(options, &stop).await?;
    if let Some(file) = &args.json {
        let failed = |e: &dyn std::fmt::Display| unusable!("{}: {e}", file.display());
        let text = serde_json::to_string_pretty(lab.addresses()).map_err(|e| failed(&e))?;
        write_atomically(file, &text).map_err(|e| failed(&e))?;
    }
    let at = lab.addresses();
    say!("{}", start_line(at));
    if lan {
        say!("{} {}", pad_to_width(&localized!("手机", "phones"), LABEL_WIDTH), phone_address_line(at.phones.as_deref()));
    }
    if let Some(Token(token)) = &at.admin {
        say!(
            "{}",
            localized!(
                "{:<14} {token}  （访客不能做的事，页面会要它）",
                "{:<14} {token}  (the page asks for it where a visitor may not)",
                "admin token"
            )
        );
    }
    if args.options.class {
        say!("{}", desk_line(at));
        if let Some(code) = phone_qr_code(at) {
            say!("{code}");
        }
    }
    say!(
        "\n{}\n{}",
        details(&lab),
        localized!(
            "日志和数据     {}\n按 Ctrl-C 停掉全部。",
            "logs and data  {}\nCtrl-C stops everything.",
            args.options.dir.unwrap_or_default().display()
        )
    );

    let printer = Printer::start(|line| say!("{line}"));
    let notes = Printer::start(|line| print_to_stderr(format_args!("oversell: {line}")));
    let mut exits = lab.member_exits();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(line) = lines.recv() => printer.print(line),
            Some(exit) = exits.next() => notes.print(exit),
            Some(request) = requests.recv() => {
                let is_fault = matches!(request, ControlRequest::Fault(..));
                let done = tokio::select! {
                    done = lab.serve(request) => done,
                    () = stop.cancelled() => break,
                };
                if let Some(done) = done {
                    printer.print(localized!("故障：{done}", "fault: {done}"));
                }
                if is_fault {
                    exits = lab.member_exits();
                }
            }
        }
    }
    lab.stop().await;
    Ok(())
}

/// Prints lines in a thread of its own, so that a reader of stdout that stands still does not stop the lab. Lines
/// beyond [`MAX_UNPRINTED`] are dropped and counted.
struct Printer {
    lines: SyncSender<String>,
    dropped: Arc<AtomicUsize>,
}

impl Printer {
    /// Starts the thread, which gives each line to `print`.
    fn start(print: impl Fn(String) + Send + 'static) -> Self {
        let (lines, waiting) = sync_channel::<String>(MAX_UNPRINTED);
        let dropped = Arc::new(AtomicUsize::new(0));
        let missing = Arc::clone(&dropped);
        thread::spawn(move || {
            for line in waiting {
                print(line);
                let missing = missing.swap(0, Ordering::Relaxed);
                if missing > 0 {
                    print(localized!(
                        "……这里缺 {missing} 行：当时没有人读标准输出",
                        "… {missing} lines are missing here: nobody read stdout"
                    ));
                }
            }
        });
        Self { lines, dropped }
    }

    /// Queues a line without waiting; if [`MAX_UNPRINTED`] are queued already, drops and counts it.
    fn print(&self, line: String) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(line) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Starts a lab on free ports with what the command needs, runs `run` with its addresses and the times that the `starts` took, and
/// stops the lab. After a signal `run` has 3 s to print its result.
pub async fn run_on_lab<R>(
    stop: &CancellationToken,
    needs: Needs,
    run: impl FnOnce(Addresses, Vec<Duration>) -> R,
) -> Result<(), Failure>
where
    R: Future<Output = Result<(), Failure>>,
{
    let Needs { etcd, starts, breakable } = needs;
    let (control, mut requests) = match breakable {
        true => Some(fault::listen().await?).unzip(),
        false => (None, None),
    };
    let options = Options { links: breakable, replica: breakable, control, progress: true, etcd, ..Options::default() };
    let mut lab = start(options, stop).await?;
    let mut start_times = Vec::new();
    for _ in 0..starts {
        start_times.push(measure_instance_start(&mut lab).await?);
    }
    let running = finish_within_timeout(run(lab.addresses().clone(), start_times), stop);
    // `run` goes on while a fault is injected.
    let serving = async {
        if let Some(requests) = &mut requests {
            while let Some(request) = requests.recv().await {
                lab.serve(request).await;
            }
        }
        pending().await
    };
    let done = tokio::select! {
        done = running => done,
        never = serving => never,
    };
    lab.stop().await;
    done
}

/// The result of `running`; [`Failure::Interrupted`] if it takes longer than [`FINISH_TIMEOUT`] after a signal.
async fn finish_within_timeout(
    running: impl Future<Output = Result<(), Failure>>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let mut running = pin!(running);
    tokio::select! {
        done = &mut running => done,
        () = stop.cancelled() => timeout(FINISH_TIMEOUT, running).await.unwrap_or_else(|_| {
            Err(Failure::Interrupted(localized!(
                "被信号打断；实验环境已停止",
                "cut short by a signal; the lab is stopped"
            )))
        }),
    }
}

/// Stops the last instance, starts it again, and measures the time from its start until it is ready.
async fn measure_instance_start(lab: &mut Lab) -> Result<Duration, Failure> {
    let name = lab.addresses().instances.last().map(|instance| instance.name.clone()).unwrap_or_default();
    lab.terminate(&name).await?;
    let begun = Instant::now();
    lab.restart(&name).await?;
    Ok(begun.elapsed())
}

/// Starts a lab, and prints its warnings on stderr. A signal meanwhile stops what had been started: [`Failure::Interrupted`].
async fn start(options: Options, stop: &CancellationToken) -> Result<Lab, Failure> {
    let lab = tokio::select! {
        lab = Lab::start(options) => lab?,
        () = stop.cancelled() => {
            return Err(Failure::Interrupted(localized!(
                "被信号打断；已经启动的都停掉了",
                "cut short by a signal; everything that had been started is stopped"
            )));
        }
    };
    for line in lab.warning().into_iter().chain(lab.unavailable_lessons().iter().map(String::as_str)) {
        print_to_stderr(format_args!("oversell: {line}"));
    }
    Ok(lab)
}

/// The first line that `oversell lab` prints when it is up: the address to open. It has the admin token behind `#`, which browsers do not
/// send, so that the first button works.
fn start_line(at: &Addresses) -> String {
    let label = pad_to_width(&localized!("打开", "open"), LABEL_WIDTH);
    let address = address_with_token(at, "");
    match at.admin {
        Some(_) => localized!(
            "{label} {address}  （只给老师：用浏览器打开它就有口令）",
            "{label} {address}  (the teacher's alone: a browser that opens it has the token)"
        ),
        None => localized!(
            "{label} {address}  （在浏览器里；请求也发到这里）",
            "{label} {address}  (in a browser; requests go there, too)"
        ),
    }
}

/// The address of a page, with the admin token if there is one.
fn address_with_token(at: &Addresses, page: &str) -> String {
    let token = at.admin.as_ref().map(|Token(token)| format!("#token={token}"));
    format!("{}/{page}{}", at.http, token.unwrap_or_default())
}

/// What stands below: each server's address and pid, how to reach it by hand, and the links.
fn details(lab: &Lab) -> String {
    let at = lab.addresses();
    let mut lines = Vec::new();
    for (name, address, pid) in super::processes(&mut at.clone()) {
        let is_instance = at.instances.iter().any(|one| one.name == name);
        let title = if is_instance { localized!("实例 {name}", "instance {name}") } else { name };
        lines.push(format!("{} {address}  (pid {pid})", pad_to_width(&title, LABEL_WIDTH)));
    }
    let versions: Vec<_> = at.versions.values().map(String::as_str).collect();
    let by_hand = [
        format!("mysql --host=127.0.0.1 --port={} --user=root test", port_of(&at.mysql.url)),
        format!("redis-cli -p {}", at.redis.first().map_or("", |node| port_of(&node.url))),
        format!("{} -server {}", super::zookeeper::cli_path(), at.zookeeper.connect),
    ];
    let etcd = at.etcd.first().map(|node| format!("etcdctl --endpoints={} endpoint status", node.url));
    let durability = [
        "database: innodb_flush_log_at_trx_commit=1, binlog off, REPEATABLE READ".to_owned(),
        format!("{}: {}", redis::name(0), redis::APPEND_ONLY_OPTIONS.join(" ").replace("--", "")),
        localized!("其余 Redis 节点什么也不保存", "the other Redis nodes keep nothing"),
    ];
    let links = lab.links().map(|(link, address)| format!("{link} {address}")).collect();
    for (what, several) in [
        (localized!("服务器", "servers"), vec![versions.join(", ")]),
        (localized!("手工连接", "by hand"), by_hand.into_iter().chain(etcd).collect()),
        (localized!("持久化", "durability"), durability.into()),
        (localized!("线路", "links"), links),
    ] {
        let several: Vec<_> = several;
        let labels = std::iter::once(&*what).chain(std::iter::repeat(""));
        lines.extend(labels.zip(several).map(|(label, line)| format!("{} {line}", pad_to_width(label, LABEL_WIDTH))));
    }
    lines.join("\n")
}

/// The line with the address for phones; without one, that this machine is in no network.
fn phone_address_line(phones_url: Option<&str>) -> String {
    phones_url.map_or_else(
        || localized!("这台机器不在任何网络里", "this machine is in no network"),
        |url| {
            localized!(
                "{url}/class.html  （能连上的人可以购买、参加课程、重演竞态）",
                "{url}/class.html  (whoever reaches it may buy, visit lessons and play races)"
            )
        },
    )
}

/// The QR code of the class page for phones; `None` in a lab without an address for them.
fn phone_qr_code(at: &Addresses) -> Option<String> {
    let code = QrCode::new(format!("{}/class.html", at.phones.as_deref()?)).ok()?;
    // Light modules are drawn, as terminals are dark.
    Some(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

/// The line with the address of the class page, where the teacher's desk is.
fn desk_line(at: &Addresses) -> String {
    format!("{} {}", pad_to_width(&localized!("讲台", "the desk"), LABEL_WIDTH), address_with_token(at, "class.html"))
}

/// The port in a URL; the host if there is none.
fn port_of(url: &str) -> &str {
    authority(url).rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_a_code_and_a_desk_with_its_token() {
        let options = Options { class: true, ..Options::default() }.for_class();
        assert!(options.lan && options.links && options.replica);
        let at: Addresses = serde_json::from_value(serde_json::json!({
            "http": "http://127.0.0.1:8080", "instances": [], "redis": [],
            "mysql": {"url": "", "pid": 0}, "zookeeper": {"connect": "", "pid": 0}, "nginx": {"url": "", "pid": 0},
            "phones": "http://192.168.1.5:8080", "admin": "sesame",
        }))
        .unwrap();
        let code = phone_qr_code(&at).unwrap();
        assert!(code.lines().count() > 10, "{code}");
        let quiet_zone = code.lines().next().unwrap_or_default();
        assert!(quiet_zone.chars().all(|drawn| drawn == '█'), "{code}");
        for (line, address) in [(start_line(&at), "/#token=sesame"), (desk_line(&at), "/class.html#token=sesame")] {
            assert!(line.contains(&format!(" http://127.0.0.1:8080{address}")), "{line}");
        }
        let open = start_line(&Addresses { admin: None, ..at });
        assert!(open.contains(" http://127.0.0.1:8080/ "), "{open}");
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_and_counted() {
        let (reading, read) = sync_channel::<()>(0);
        let (printed, shown) = std::sync::mpsc::channel();
        let printer = Printer::start(move |line| {
            read.recv().ok();
            printed.send(line).ok();
        });
        // At most one line is being printed.
        let all = MAX_UNPRINTED + 20;
        (0..all).for_each(|n| printer.print(n.to_string()));
        drop(printer);
        drop(reading);
        let shown: Vec<_> = shown.iter().collect();
        let missing = shown.iter().find(|line| line.contains("missing"));
        let missing = missing.and_then(|line| line.split(' ').nth(1)?.parse::<usize>().ok());
        assert_eq!(missing, Some(all + 1 - shown.len()), "{missing:?}");
    }
}
