//! A stranger's half hour with a lab of a class: 20,000 made-up visitors over every route of the document. Nothing of another visitor's
//! changes, and nothing that they leave grows with them: `docs/safety.md` has its bounds.

use super::bounds::of_each;
use crate::support::{
    http::{MINUTE, answer, ask_json, check_url, client, elements, status},
    labs, *,
};
use oversell_lab::{
    clients::redis_at::redis_at,
    lab::{Lab, Options},
};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sqlx::{Connection, MySqlConnection};
use std::{collections::BTreeMap, path::Path};

const VISITORS: usize = 20_000;
/// Whoever is not answered within it hangs up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// What visitors may leave of one kind: as many as there may be of them, members of rooms in three instances; else what has a fixed name.
const MAX_LEFT: [(&str, usize); 4] =
    [("redis stock:#", 400), ("rows db_stock", 400), ("mine lock:mine:#", 400), ("node /curator/double-barrier/#", 3000)];
const MAX_LEFT_OF_OTHERS: usize = 20;
/// The answers to a request that is not read as its document says.
const REFUSED: [Option<StatusCode>; 3] =
    [Some(StatusCode::BAD_REQUEST), Some(StatusCode::UNPROCESSABLE_ENTITY), Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)];
/// Connections of an instance's pools and of clients that nginx keeps.
const MAX_OPEN_FILES: usize = 200;

type Counts = BTreeMap<String, usize>;

/// A name without what differs from visitor to visitor: each part with a digit is `#`.
fn kind_of(name: &str) -> String {
    let parts = name.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let kind = parts.map(|part| match part.find(|letter: char| letter.is_ascii_digit()) {
        Some(_) => format!("#{}", part.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric())),
        None => part.to_owned(),
    });
    let kind = kind.collect::<String>();
    kind.replace("#-", "").replace("#_", "")
}

/// How many there are of each kind in the servers, the lab's folder and the instances.
async fn counts(lab: &Lab, folder: &Path) -> Result<Counts> {
    let at = lab.addresses();
    let mut counts = Counts::new();
    let mut add = |kind: String, many: usize| *counts.entry(kind).or_default() += many;
    let mine = &at.mine.as_ref().context("no Redis of theirs")?.url;
    for (server, url) in [("redis", &at.redis[0].url), ("mine", mine)] {
        let mut redis = redis_at(url).await?;
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut redis).await?;
        for key in keys {
            add(format!("{server} {}", kind_of(&key)), 1);
        }
    }
    let mut redis = redis_at(mine).await?;
    add("mine visitors".to_owned(), redis::cmd("HLEN").arg("{mine}:scripts").query_async(&mut redis).await?);
    let mut mysql = MySqlConnection::connect(&at.mysql.url).await?;
    for (table,) in sqlx::query_as::<_, (String,)>("SHOW TABLES").fetch_all(&mut mysql).await? {
        let rows: i64 = sqlx::query_scalar(&format!("SELECT COUNT(*) FROM `{table}`")).fetch_one(&mut mysql).await?;
        add("tables".to_owned(), 1);
        add(format!("rows {}", kind_of(&table)), usize::try_from(rows)?);
    }
    let zookeeper = zookeeper_client::Client::connect(&at.zookeeper.connect).await?;
    let mut paths = vec![String::new()];
    while let Some(path) = paths.pop() {
        let name = if path.is_empty() { "/" } else { &path };
        let children = match zookeeper.list_children(name).await {
            Err(zookeeper_client::Error::NoNode) => vec![],
            children => children?,
        };
        add(format!("node {}", kind_of(name)), 1);
        paths.extend(children.into_iter().map(|child| format!("{path}/{child}")));
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)?.flatten() {
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                add("files".to_owned(), 1);
            }
        }
    }
    for instance in &at.instances {
        add("open files".to_owned(), std::fs::read_dir(format!("/proc/{}/fd", instance.pid))?.count());
    }
    Ok(counts)
}

/// The kinds of which there are more than visitors may leave.
fn too_many(before: &Counts, after: &Counts) -> Vec<String> {
    let more = after.iter().filter_map(|(kind, now)| {
        let grown = now.saturating_sub(before.get(kind).copied().unwrap_or_default());
        let max = MAX_LEFT.iter().find(|(of, _)| of == kind).map(|(_, max)| *max);
        let max = max.unwrap_or(match kind.as_str() {
            "open files" => MAX_OPEN_FILES,
            "mine visitors" => 400,
            _ => MAX_LEFT_OF_OTHERS,
        });
        (grown > max).then(|| format!("{grown} more of {kind}, at most {max}"))
    });
    more.collect()
}

/// A value of a schema: an allowed one, an example, the default or the least; another for another number where there are several.
fn value_of(document: &Value, schema: &Value, n: usize) -> Value {
    let pick = |of: &str| schema[of].as_array().filter(|all| !all.is_empty()).map(|all| all[n % all.len()].clone());
    if let Some(place) = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        return document.pointer(place).map_or(Value::Null, |schema| value_of(document, schema, n));
    }
    let one = pick("enum").or_else(|| pick("examples"));
    let one = one.or_else(|| ["const", "example", "default", "minimum"].iter().find_map(|of| schema.get(of).cloned()));
    if let Some(one) = one {
        return one;
    }
    if let Some(any) = ["oneOf", "anyOf", "allOf"].iter().find_map(|of| schema[of].as_array()).filter(|any| !any.is_empty()) {
        return value_of(document, &any[n % any.len()], n);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields = fields.filter(|(name, _)| elements(&schema["required"]).any(|required| required == *name));
            fields.map(|(name, field)| (name.clone(), value_of(document, field, n))).collect()
        }
        Some("array") => json!([value_of(document, &schema["items"], n)]),
        Some("boolean") => json!(n.is_multiple_of(2)),
        Some("integer" | "number") => json!(n % 7),
        _ if schema["format"] == "uuid" => json!(format!("6f1c2a0e-8a55-4a0f-9a77-{n:012}")),
        _ => json!(format!("a{n}")),
    }
}

/// The request of a visitor to an operation: in each second round with all fields that it has, else with those that it must have.
fn request(
    document: &Value,
    base: &str,
    (path, method, operation): &(String, Method, Value),
    n: usize,
    round: usize,
) -> RequestBuilder {
    let mut address = path.clone();
    let (mut query, mut headers) = (vec![], vec![]);
    for field in elements(&operation["parameters"]) {
        let (name, is_required) = (field["name"].as_str().unwrap_or_default(), field["required"] == true);
        let value = field.get("example").cloned().unwrap_or_else(|| value_of(document, &field["schema"], n));
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let value = match name {
            "x-visitor" => format!("made-up-visitor-{n:06}"),
            "x-user-id" => (n + 1).to_string(),
            // Each has a room of its own size: nobody is waited for, and somebody can leave.
            "members" => "1".to_owned(),
            _ => value,
        };
        match field["in"].as_str() {
            Some("path") => address = address.replace(&format!("{{{name}}}"), &value),
            Some("query") if is_required || round % 2 == 1 => query.push((name.to_owned(), value)),
            Some("header") => headers.push((name.to_owned(), value)),
            _ => {}
        }
    }
    let mut request = client().request(method.clone(), format!("{base}{address}")).query(&query).timeout(ANSWER_TIMEOUT);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match operation.pointer("/requestBody/content/application~1json/schema") {
        Some(schema) => request.json(&value_of(document, schema, n)),
        None => request,
    }
}

/// Who has come before: its scripts, and the stock of its product.
async fn belongings(base: &str) -> Result<[Value; 2]> {
    let mine = client().get(format!("{base}/mine")).header("x-visitor", "who-has-come-before").send().await?;
    let mine: Value = mine.error_for_status()?.json().await?;
    let stock = ask_json(format!("{base}/stock?stock_id={}", mine["stock_id"])).await?;
    Ok([mine["scripts"].clone(), stock])
}

/// The strategies whose locks are free. One with tokens may refuse, since those of Redis and of ZooKeeper count differently.
async fn free_strategies(base: &str) -> Result<Vec<String>> {
    let mut free = vec![];
    for strategy in elements(&ask_json(format!("{base}/strategies")).await?) {
        let slug = strategy["slug"].as_str().context("no name")?;
        // A visit may stay for a minute, also one whose visitor has hung up.
        if status(check_url(base, slug, 0, MINUTE + 15_000)).await? != StatusCode::SERVICE_UNAVAILABLE {
            free.push(slug.to_owned());
        }
    }
    Ok(free)
}

#[apply(soak_test!)]
async fn made_up_visitors_leave_nothing_and_change_nothing() -> Result<()> {
    let folder = labs::folder()?;
    let mut options = Options { dir: Some(folder.path().join("lab")), ..labs::short_leases() };
    // As `--lan` does, but for the address: whatever an administrator alone may do is refused.
    options.env.push(("OVERSELL__ADMIN__TOKEN".to_owned(), "open-sesame".to_owned()));
    let lab = Lab::start(options).await?;
    let base = &lab.addresses().http;
    let document = ask_json(format!("{base}/openapi.json")).await?;
    let methods = ["get", "post", "put", "delete"];
    let operations = document["paths"].as_object().context("no paths")?.iter().flat_map(|(path, item)| {
        let methods = methods.iter().filter_map(|method| Some((*method, item.get(method)?)));
        methods.map(|(method, operation)| {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            (path.clone(), method, operation.clone())
        })
    });
    let operations: Vec<_> = operations.collect();
    ensure!(operations.len() > 80, "{} operations", operations.len());

    let visit = |request: RequestBuilder| answer(request.header("x-visitor", "who-has-come-before"));
    let scripts = json!({"acquire": "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])", "release": "return redis.call('del', KEYS[1])"});
    for request in [client().put(format!("{base}/mine")).json(&scripts), client().post(format!("{base}/check/lock/mine"))] {
        let (status, words) = visit(request).await?;
        ensure!(status == StatusCode::OK, "{status} {words}");
    }
    let free_before = free_strategies(base).await?;
    ensure!(free_before.len() > 40, "{free_before:?}");
    let (own, before) = (belongings(base).await?, counts(&lab, folder.path()).await?);

    let seen = of_each(VISITORS, async |n| {
        let operation = n % operations.len();
        let sent = request(&document, base, &operations[operation], n, n / operations.len()).send().await;
        let status = match sent {
            Ok(answer) => {
                let status = answer.status();
                // A stream is read until the visitor hangs up.
                answer.bytes().await.ok();
                Some(status)
            }
            Err(hung_up) if hung_up.is_timeout() => None,
            Err(other) => return Err(other.into()),
        };
        Ok((operation, status))
    });
    let mut statuses = vec![BTreeMap::<_, usize>::new(); operations.len()];
    for (operation, status) in seen.await? {
        *statuses[operation].entry(status).or_default() += 1;
    }
    let mut failed = vec![];
    for ((path, method, _), seen) in operations.iter().zip(&statuses) {
        let told = seen
            .iter()
            .map(|(status, many)| format!("{many} × {}", status.map_or("hung up".to_owned(), |s| s.as_u16().to_string())));
        let told = told.collect::<Vec<_>>().join(", ");
        println!("{method} {path}: {told}");
        if seen.contains_key(&Some(StatusCode::INTERNAL_SERVER_ERROR)) || seen.keys().all(|status| REFUSED.contains(status)) {
            failed.push(format!("{method} {path}: {told}"));
        }
    }

    wait_until("replays and visits have ended", async || Ok(too_many(&before, &counts(&lab, folder.path()).await?).is_empty()))
        .await
        .with_context(|| format!("{statuses:?}"))?;
    let free = free_strategies(base).await?;
    let held: Vec<_> = free_before.iter().filter(|slug| !free.contains(slug)).collect();
    ensure!(free == free_before, "their locks are held still: {held:?}");
    let after = counts(&lab, folder.path()).await?;
    for (kind, now) in after.iter().filter(|(kind, now)| before.get(*kind) != Some(now)) {
        println!("{kind}: {} before, {now} after", before.get(kind).unwrap_or(&0));
    }
    ensure!(belongings(base).await? == own, "another visitor's: {own:?}, then {:?}", belongings(base).await?);
    let (status, words) = answer(client().get(format!("{base}/health/ready"))).await?;
    ensure!(status == StatusCode::OK, "{status} {words}");

    ensure!(failed.is_empty(), "they fail, or their requests are never read: {failed:#?}");

    // The twins: a key for each of a few visitors in the Redis that sells; and a visitor whose scripts another one has taken away.
    let mut redis = redis_at(&lab.addresses().redis[0].url).await?;
    for n in 0..=MAX_LEFT_OF_OTHERS {
        redis::cmd("SET").arg(format!("mine:made-up-visitor-{n:06}")).arg(1).exec_async(&mut redis).await?;
    }
    let found = too_many(&after, &counts(&lab, folder.path()).await?);
    ensure!(found.iter().any(|kind| kind.contains("more of redis mine:")), "not found: {found:?}");
    let mut mine = redis_at(&lab.addresses().mine.as_ref().context("no Redis of theirs")?.url).await?;
    redis::cmd("HDEL").arg("{mine}:scripts").arg("who-has-come-before").exec_async(&mut mine).await?;
    ensure!(belongings(base).await? != own, "the loss is not seen");
    lab.stop().await;
    Ok(())
}
