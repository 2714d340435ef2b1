//! Where the servers come from: the lab starts them, for this run alone.

use oversell_lab::{
    lab::{Lab, Options, Part},
    terminal::failure::Failure,
};
use sqlx::{Connection, MySqlConnection};

/// Starts ZooKeeper, etcd, MySQL and five independent Redis, and makes the tables.
pub(crate) async fn start() -> Result<Lab, Failure> {
    let lab = Lab::start(Options {
        without: vec![Part::Instances, Part::Nginx],
        redis_ports: vec![0; 5],
        etcd: 1,
        ..Options::default()
    });
    let lab = lab.await?;
    let mysql = MySqlConnection::connect(&lab.addresses().mysql.url).await;
    oversell_lab::migrations::migrator().run_direct(&mut mysql.expect("mysql is there")).await.expect("the tables are made");
    Ok(lab)
}
