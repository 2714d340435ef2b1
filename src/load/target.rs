//! Which cluster a command loads: a lab, or any other that runs somewhere.

use super::{
    plan::ONE_INSTANCE,
    stock_api::{self, RegistryEntry, without_trailing_slash},
};
use oversell_lab::{
    addresses::{ADMIN_TOKEN_VARIABLE, Addresses, LAB_JSON},
    terminal::{
        chinese::localized,
        failure::{Failure, unusable, unusable_localized},
    },
};
use reqwest::Url;
use secrecy::SecretString;
use std::path::PathBuf;

/// The options by which a command finds its cluster.
#[derive(Debug, clap::Args)]
pub struct ClusterOptions {
    /// Where a running lab has written its addresses
    #[arg(long, value_name = "PATH", default_value = LAB_JSON)]
    lab_json: PathBuf,
    /// The load balancer of any running cluster, instead of a lab's
    #[arg(long, value_name = "URL", value_parser = http_url)]
    http: Option<String>,
    /// One instance of that cluster
    #[arg(long, value_name = "URL", value_parser = http_url)]
    instance: Option<String>,
}

/// Accepts an `http` address with a host, unchanged.
fn http_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok();
    match url.filter(|url| url.scheme() == "http" && url.has_host()) {
        Some(_) => Ok(text.to_owned()),
        None => Err(localized!("URL 的写法如 http://127.0.0.1:8080", "a URL looks like http://127.0.0.1:8080")),
    }
}

/// The addresses of the cluster that a command loads; `None` for one that is not known.
#[derive(Debug)]
pub struct Cluster {
    /// The address of the load balancer.
    pub http: Option<String>,
    /// One of its instances, without the load balancer: the target `one`; the first of a lab.
    pub instance: Option<String>,
    /// The addresses of all servers, if the cluster is a lab.
    pub lab: Option<Addresses>,
}

impl ClusterOptions {
    /// Finds the cluster: the addresses on the command line, else the lab that is given, else the lab that runs.
    pub fn find(&self, lab: Option<Addresses>) -> Result<Cluster, Failure> {
        if self.http.is_some() || self.instance.is_some() {
            return Ok(Cluster { http: self.http.clone(), instance: self.instance.clone(), lab: None });
        }
        let lab = lab.map_or_else(|| Addresses::read_running_lab(&self.lab_json), Ok)?;
        let instance = lab.instances.first().map(|i| i.url.clone());
        Ok(Cluster { http: Some(lab.http.clone()), instance, lab: Some(lab) })
    }
}

impl Cluster {
    /// The address of the target `one` or `three`.
    /// Errors: [`Failure::Unusable`] if it is not known; the text names the missing option.
    pub fn address(&self, target: &str) -> Result<&str, Failure> {
        let (address, option) = if target == ONE_INSTANCE { (&self.instance, "--instance") } else { (&self.http, "--http") };
        address.as_deref().ok_or_else(|| {
            unusable_localized!(
                "目标 {target} 需要 {option}：请给出，或从 --targets 里去掉",
                "target {target} needs {option}: pass it, or leave it out of --targets"
            )
        })
    }
}

/// One of the two lists of names that each cluster serves: of stock strategies, and of steps of the seckill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    Strategies,
    Steps,
}

/// Checks that a service answers at `at` and knows all `wanted` names; returns those whose server it does not have.
pub async fn check(at: &str, registry: Registry, wanted: &[&str]) -> Result<Vec<String>, Failure> {
    let (path, what) = match registry {
        Registry::Strategies => ("strategies", "strategy"),
        Registry::Steps => ("voucher-order/strategies", "step"),
    };
    let url = format!("{}/{path}", without_trailing_slash(at));
    let known: Vec<RegistryEntry> = stock_api::read(&url).await.map_err(|why| {
        unusable_localized!(
            "{at} 没有应答（{why}）。地址对吗？在实验环境里，`oversell lab fault start nginx`（或实例的名字）重新启动被杀死的；\
             --lab 启动一个自己的实验环境",
            "{at} does not answer ({why}). Is it the right address? In a lab, `oversell lab fault start nginx` (or the instance's \
             name) starts one that was killed; --lab starts a lab of its own"
        )
    })?;
    let is_known = |slug: &&&str| known.iter().any(|k| k.slug == **slug);
    if let Some(missing) = wanted.iter().find(|slug| !is_known(slug)) {
        return Err(unusable!("{at} does not know the {what} {missing}"));
    }
    let absent = known.into_iter().filter(|k| k.absent.is_some() && wanted.contains(&&*k.slug));
    Ok(absent.map(|k| k.slug).collect())
}

/// The admin token of a cluster: that of its lab, else that in the environment; `None` without one.
pub fn token(lab: Option<&Addresses>) -> Option<SecretString> {
    let of_lab = lab.and_then(|lab| lab.admin.clone());
    let token = of_lab.map_or_else(|| std::env::var(ADMIN_TOKEN_VARIABLE).ok(), |token| Some(token.0));
    token.filter(|token| !token.is_empty()).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_url_is_refused_with_a_good_example() {
        for url in ["http://127.0.0.1:8080", "http://[::1]:80/", "http://shop"] {
            assert_eq!(http_url(url), Ok(url.to_owned()));
        }
        for text in ["foo", "", "localhost:8080", "127.0.0.1:8080", "https://shop", "http://"] {
            let error = http_url(text).expect_err(text);
            assert!(error.contains("http://127.0.0.1:8080"), "{text}: {error}");
        }
    }
}
