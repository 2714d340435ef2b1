//! Servers that all tests share, with a product for each test.

use super::{Context, Result, labs::program, within_limit};
use oversell::{config::Config, ctx::Ctx, seckill::consumer::Consumer, section::Job, stock::Store, stock_admin};
use oversell_lab::{
    addresses::Addresses,
    lab::{Lab, Options, Part},
};
use parking_lot::Mutex;
use redis::AsyncCommands;
use secrecy::ExposeSecret;
use sqlx::{Connection, Executor, MySqlConnection};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::sync::OnceCell;

static SHARED: OnceCell<Servers> = OnceCell::const_new();

/// Real servers and three independent clients: three instances without HTTP.
pub(crate) struct Servers {
    lab: Mutex<Option<Lab>>,
    ctxs: Vec<Arc<Ctx>>,
    next: AtomicI64,
}

pub(crate) struct Site {
    pub(crate) ctxs: Vec<Arc<Ctx>>,
    pub(crate) id: i64,
}

/// A lab without instances, with one Redis.
pub(crate) async fn servers_alone() -> Result<Lab> {
    let options = Options { without: vec![Part::Instances, Part::Nginx], redis_ports: vec![0], etcd: 1, ..program() };
    Ok(Lab::start(options).await?)
}

impl Servers {
    /// The shared servers, started by the first test that needs them.
    pub(crate) async fn shared() -> Result<&'static Self> {
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> Result<Self> {
        let lab = servers_alone().await?;
        let ctxs: Vec<_> = (0..3).map(|_| Ok(Arc::new(Ctx::new(config(lab.addresses()))?))).collect::<Result<_>>()?;
        migrate(&ctxs[0]).await;
        // One of the clients writes the orders of the stream until it closes.
        ctxs[0].tasks.spawn(Consumer::new(Ctx::clone(&ctxs[0])).run());
        Ok(Self { lab: Mutex::new(Some(lab)), ctxs, next: AtomicI64::new(1000) })
    }

    pub(crate) async fn stop() {
        let Some(servers) = SHARED.get() else { return };
        for ctx in &servers.ctxs {
            ctx.close(Duration::from_secs(10)).await;
        }
        let lab = servers.lab.lock().take();
        if let Some(lab) = lab {
            lab.stop().await;
        }
    }

    pub(crate) async fn site(&self) -> Site {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        Site { ctxs: self.ctxs.clone(), id }
    }

    /// Clients of another instance with a changed configuration.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Config)) -> Arc<Ctx> {
        let mut config = self.ctxs[0].config.clone();
        change(&mut config);
        Arc::new(Ctx::new(config).expect("good addresses"))
    }

    pub(crate) fn mysql(&self) -> String {
        self.ctxs[0].config.mysql.url.expose_secret().to_owned()
    }

    /// A connection that belongs to no instance.
    pub(crate) async fn outsider(&self) -> Result<MySqlConnection> {
        Ok(MySqlConnection::connect(&self.mysql()).await?)
    }

    /// Creates a user with every right in this database, and an instance that logs in as it.
    pub(crate) async fn user(&self, name: &str, database: &str) -> Result<(User, Arc<Ctx>)> {
        let mut outsider = self.outsider().await?;
        for statement in [
            format!("CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'right'"),
            format!("GRANT ALL ON {database}.* TO {name}@'127.0.0.1'"),
        ] {
            outsider.execute(statement.as_str()).await?;
        }
        let url = self.mysql();
        let (server, _) = url.rsplit_once('/').context("no database")?;
        let (_, host) = server.rsplit_once('@').context("no user")?;
        let url = format!("mysql://{name}:right@{host}/{database}");
        let ctx = self.with(|config| config.mysql.url = url.into());
        let name = name.to_owned();
        Ok((User { name, outsider }, ctx))
    }

    /// Creates a database, and an instance that uses it.
    pub(crate) async fn database(&self, name: &str) -> Result<(MySqlConnection, Arc<Ctx>)> {
        let mut outsider = self.outsider().await?;
        for statement in [format!("CREATE DATABASE {name}"), format!("USE {name}")] {
            outsider.execute(statement.as_str()).await?;
        }
        let url = self.mysql();
        let (server, _) = url.rsplit_once('/').context("no database")?;
        let url = format!("{server}/{name}");
        Ok((outsider, self.with(|config| config.mysql.url = url.into())))
    }
}

/// A MySQL user whose new connections can be refused (error 1045).
pub(crate) struct User {
    name: String,
    outsider: MySqlConnection,
}

impl User {
    /// Fills both pools of the instance, and refuses later connections.
    pub(crate) async fn refuse_later_connections(&mut self, ctx: &Ctx) -> Result<()> {
        const EACH: usize = 3;
        self.change_password("right").await?;
        let wait = Duration::from_secs(10);
        for pool in [&ctx.db, &ctx.admin_pool] {
            let mut conns = Vec::new();
            for _ in 0..EACH {
                conns.push(pool.conn(wait).await?);
            }
            conns.into_iter().for_each(oversell_lock::mysql::Conn::done);
        }
        self.change_password("another").await
    }

    /// Refused connections of all users.
    pub(crate) async fn refusals(&mut self) -> Result<i64> {
        let refusals = "SHOW GLOBAL STATUS LIKE 'Aborted_connects'";
        let (_, count): (String, String) = sqlx::query_as(refusals).fetch_one(&mut self.outsider).await?;
        Ok(count.parse()?)
    }

    /// Waits for one more refusal.
    pub(crate) async fn wait_until_refused(&mut self, before: i64) -> Result<()> {
        let look = async {
            while self.refusals().await? == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        };
        within_limit("a connection is refused", look).await?
    }

    async fn change_password(&mut self, to: &str) -> Result<()> {
        let change = format!("ALTER USER {}@'127.0.0.1' IDENTIFIED BY '{to}'", self.name);
        self.outsider.execute(change.as_str()).await?;
        Ok(())
    }
}

impl Site {
    /// Sets the product's stock in both stores.
    pub(crate) async fn put_stock(&self, count: i64) {
        let mut conn = self.ctxs[0].db.conn(Duration::from_secs(10)).await.expect("MySQL");
        sqlx::query("REPLACE INTO db_stock (id, product_code, stock_code, count) VALUES (?, 'test', '001', ?)")
            .bind(self.id)
            .bind(count)
            .execute(&mut *conn)
            .await
            .expect("a new product");
        let empty = sqlx::query("DELETE FROM db_stock_bucket WHERE stock_id = ?").bind(self.id);
        empty.execute(&mut *conn).await.expect("no bucket");
        conn.done();
        let mut redis = self.ctxs[0].redis.connection();
        let set = redis.set::<_, _, ()>(self.redis_key(), count).await;
        set.expect("Redis");
    }

    pub(crate) async fn stock(&self, store: Store) -> i64 {
        let count = stock_admin::count(&self.ctxs[0], store, self.id).await;
        count.expect("the product")
    }

    fn redis_key(&self) -> String {
        Job::new(self.id, Duration::ZERO, Duration::ZERO).redis_name("stock")
    }
}

/// A product in a new database.
pub(crate) async fn shelf(ctx: &Arc<Ctx>) -> Site {
    migrate(ctx).await;
    Site { ctxs: vec![Arc::clone(ctx)], id: 1 }
}

pub(crate) async fn migrate(ctx: &Ctx) {
    let mut conn = ctx.db.conn(Duration::from_secs(10)).await.expect("MySQL");
    oversell_lab::migrations::migrator().run(&mut *conn).await.expect("the migrations run");
    conn.done();
}

/// Configuration of an instance on these servers.
pub(crate) fn config(addresses: &Addresses) -> Config {
    Config::load(&[
        ("mysql.url", addresses.mysql.url.clone()),
        ("redis.url", addresses.redis[0].url.clone()),
        ("zookeeper.connect", addresses.zookeeper.connect.clone()),
        ("etcd.endpoints", addresses.etcd.iter().map(|node| node.url.as_str()).collect::<Vec<_>>().join(",")),
    ])
    .expect("a good configuration")
}
