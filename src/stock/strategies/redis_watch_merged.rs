#![doc = include_str!("redis_watch_merged.md")]

use super::redis_watch::{watch_count, write_count};
use crate::stock::*;
use crate::{
    section::redis_key,
    stock::merged::{self, TakeMany, TakeOutcome},
};
use tokio::time::timeout;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.8",
    rank: Rank::Beyond("redis-watch"),
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 12_000,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes a piece together with the other requests of this instance.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    merged::deduct::<WatchAndSet>(ctx, job).await
}

/// Takes the pieces of a group, or as many as there are, by one WATCH, MULTI, EXEC.
struct WatchAndSet;

impl TakeMany for WatchAndSet {
    const AWAITED: &'static str = "key stock (WATCH)";

    async fn take_many(ctx: &Ctx, stock_id: i64, wanted: i64, wait: Duration) -> Result<TakeOutcome, Error> {
        let key = redis_key::stock_key(ctx, stock_id);
        let watched = async {
            let mut conn = redis_key::watch_connection(ctx, wait).await?;
            let before = watch_count(ctx, &mut *conn, &key, stock_id).await?;
            Ok((conn, before))
        };
        // Together within the time of one answer: a server that stops answers neither.
        let limit = wait + Duration::from_millis(ctx.config.redis.timeout_ms);
        let watched = timeout(limit, watched).await;
        let no_answer = |_| Err(Error::unavailable(Server::Redis, "no answer in time"));
        let (mut conn, before) = watched.unwrap_or_else(no_answer)?;
        let pieces = wanted.min(before);
        if pieces <= 0 {
            return Ok(TakeOutcome::SoldOut);
        }
        let left = before - pieces;
        Ok(if write_count(&mut *conn, &key, left).await? {
            TakeOutcome::Pieces(pieces, Some(left))
        } else {
            TakeOutcome::Conflict
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::time::Instant;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        time::sleep,
    };

    const REPLY_TIMEOUT_MS: u64 = 4_000;
    /// Nearly the whole timeout is over when the connection is there.
    const CONNECT_TIME: Duration = Duration::from_millis(REPLY_TIMEOUT_MS * 7 / 8);

    /// A Redis that greets late, and never answers WATCH.
    async fn serve_slowly(listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut commands = [0; 4096];
                let mut is_first = true;
                while let Ok(length @ 1..) = stream.read(&mut commands).await {
                    let text = String::from_utf8_lossy(&commands[..length]).into_owned();
                    if text.contains("WATCH") {
                        std::future::pending::<()>().await;
                    }
                    if std::mem::take(&mut is_first) {
                        sleep(CONNECT_TIME).await;
                    }
                    let answers = "+OK\r\n".repeat(text.matches('*').count());
                    if stream.write_all(answers.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    }

    /// Without the common limit it would take both: the time of the connection, and that of an answer.
    #[tokio::test]
    async fn connection_and_watch_share_one_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("redis://{}", listener.local_addr().expect("its address"));
        let stub = tokio::spawn(serve_slowly(listener));
        let settings = [("redis.url", url), ("redis.timeout_ms", REPLY_TIMEOUT_MS.to_string())];
        let config = Config::load_with(None, &settings).expect("a configuration");
        let ctx = Ctx::new(config).expect("clients");
        let begun = Instant::now();
        let taken = WatchAndSet::take_many(&ctx, 1, 1, Duration::ZERO).await;
        let took = begun.elapsed();
        assert!(matches!(taken, Err(Error::Unavailable { .. })), "{:?}", taken.err());
        assert!(took > CONNECT_TIME, "{took:?}: it never came to WATCH");
        assert!(took < CONNECT_TIME * 3 / 2, "{took:?}");
        stub.abort();
    }
}
