//! A real browser: Debian's Chromium without a window, driven over its own protocol (CDP).

use crate::buyers::{LONG, text, until};
use chromiumoxide::{
    Browser as Chromium, BrowserConfig, Page,
    cdp::browser_protocol::target::{CreateBrowserContextParams, CreateTargetParams},
};
use futures::StreamExt;
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
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
