//! A real browser: Debian's Chromium without a window, driven over its own protocol (CDP), and its network log.

use crate::buyers::{LONG, text, until};
use chromiumoxide::{
    Browser as Chromium, BrowserConfig, Page,
    cdp::browser_protocol::{
        network::{
            EventRequestServedFromCache, EventRequestWillBeSent, EventResponseReceived,
            EventResponseReceivedExtraInfo,
        },
        target::{CreateBrowserContextParams, CreateTargetParams},
    },
};
use futures::StreamExt;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::task::JoinHandle;

/// Chromium without what shows a window, which costs a multiple of what it shows; where there is none, any Chromium will do.
const SHELL: &str = "/usr/bin/chromium-headless-shell";

/// A browser with a profile of its own. [`close`](Self::close) ends it; dropping it kills it.
pub(crate) struct Browser {
    chromium: Chromium,
    events: JoinHandle<()>,
    profile: PathBuf,
}

impl Browser {
    /// Starts it, with a window of 1280 × 720.
    pub(crate) async fn start() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("browser-{}-{number}", std::process::id()));
        let mut config = BrowserConfig::builder();
        if Path::new(SHELL).exists() {
            config = config.chrome_executable(SHELL);
        }
        let config = config
            .user_data_dir(&profile)
            .new_headless_mode()
            // It visits nothing but our own pages, and the sandbox cannot be had as root, nor in most containers.
            .no_sandbox()
            .window_size(1280, 720)
            .viewport(None)
            .launch_timeout(LONG)
            .request_timeout(LONG)
            .build()
            .map_err(|e| format!("{e}: `scripts/install test` installs Chromium"))?;
        let (chromium, mut handler) = Chromium::launch(config).await.map_err(text)?;
        let events = tokio::spawn(async move { while handler.next().await.is_some() {} });
        Ok(Self {
            chromium,
            events,
            profile,
        })
    }

    /// A new tab, empty.
    pub(crate) async fn page(&self) -> Result<Page, String> {
        self.chromium.new_page("about:blank").await.map_err(text)
    }

    /// A new tab that knows nothing of the others: as a private window.
    pub(crate) async fn private_page(&self) -> Result<Page, String> {
        let alone = self
            .chromium
            .create_browser_context(CreateBrowserContextParams::default())
            .await
            .map_err(text)?;
        let tab = CreateTargetParams::builder()
            .url("about:blank")
            .browser_context_id(alone)
            .build()?;
        self.chromium.new_page(tab).await.map_err(text)
    }

    /// Ends it, and removes its profile.
    pub(crate) async fn close(mut self) -> Result<(), String> {
        self.chromium.close().await.map_err(text)?;
        self.chromium.wait().await.map_err(text)?;
        self.events.await.map_err(text)?;
        // Its helpers may still write for a moment.
        until("its profile can be removed", || async {
            Ok(std::fs::remove_dir_all(&self.profile).is_ok())
        })
        .await
    }
}

/// What a tab asked for, and what came over the wire for it: a status, or nothing, where the browser had it already.
#[derive(Default)]
pub(crate) struct NetworkLog(Arc<Mutex<Vec<Request>>>);

#[derive(Debug)]
struct Request {
    id: String,
    url: String,
    answer: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Awaited,
    Kept,
    Sent(i64),
}

impl NetworkLog {
    /// Records from now on.
    pub(crate) async fn of(page: &Page) -> Result<Self, String> {
        let log = Self::default();
        let mut asked = page
            .event_listener::<EventRequestWillBeSent>()
            .await
            .map_err(text)?;
        let mut answered = page
            .event_listener::<EventResponseReceived>()
            .await
            .map_err(text)?;
        let mut kept = page
            .event_listener::<EventRequestServedFromCache>()
            .await
            .map_err(text)?;
        let mut sent = page
            .event_listener::<EventResponseReceivedExtraInfo>()
            .await
            .map_err(text)?;
        let requests = Arc::clone(&log.0);
        tokio::spawn(async move {
            // An answer may be told before the request that it is for.
            let mut early = HashMap::new();
            loop {
                let (id, answer) = tokio::select! {
                    Some(event) = asked.next() => {
                        let id = event.request_id.inner().clone();
                        let answer = early.remove(&id).unwrap_or(Answer::Awaited);
                        requests.lock().push(Request { id, url: event.request.url.clone(), answer });
                        continue;
                    }
                    // Where the wire has more to tell, it tells the status too: 304 where this event says 200.
                    Some(event) = answered.next() => match event.has_extra_info {
                        true => continue,
                        false => (event.request_id.inner().clone(), Answer::Kept),
                    },
                    Some(event) = kept.next() => (event.request_id.inner().clone(), Answer::Kept),
                    Some(event) = sent.next() => (event.request_id.inner().clone(), Answer::Sent(event.status_code)),
                    else => break,
                };
                match requests.lock().iter_mut().find(|request| request.id == id) {
                    Some(request) => request.answer = answer,
                    None => drop(early.insert(id, answer)),
                }
            }
        });
        Ok(log)
    }

    /// What came over the wire for each request of an address with this in it, in the order of the requests; `None` where
    /// the browser had it already. Waits until there are so many, and each is answered.
    pub(crate) async fn on_the_wire(
        &self,
        part: &str,
        requests: usize,
    ) -> Result<Vec<Option<i64>>, String> {
        let answers = || -> Vec<_> {
            self.0
                .lock()
                .iter()
                .filter(|request| request.url.contains(part))
                .map(|request| request.answer)
                .collect()
        };
        until(&format!("{requests} answers for {part}"), || async {
            let answers = answers();
            Ok(answers.len() >= requests && !answers.contains(&Answer::Awaited))
        })
        .await?;
        let sent = |answer: Answer| {
            if let Answer::Sent(status) = answer {
                Some(status)
            } else {
                None
            }
        };
        Ok(answers().into_iter().map(sent).collect())
    }
}
