//! The words in braces of the lines that a student types, with the addresses of one cluster.

use super::{Chapter, Lesson, TypedLine};
use http::Uri;
use oversell_lab::addresses::Addresses;

/// The words in braces of a line that a student types, such as `{redis}`, each with its text in one cluster.
#[derive(Debug, Clone)]
pub struct Placeholders(Vec<(String, String)>);

impl Placeholders {
    /// The placeholders for the addresses of one cluster, with `{fault}` as `oversell lab fault` and the product 1.
    pub fn new(http: &str, instances: &[impl AsRef<str>], mysql: &str, redis: &[impl AsRef<str>], zookeeper: &str) -> Self {
        let mut placeholders = vec![
            ("{http}".to_owned(), http.trim_end_matches('/').to_owned()),
            ("{mysql}".to_owned(), mysql_options(mysql)),
            ("{zookeeper}".to_owned(), format!("-server {zookeeper}")),
            ("{zk}".to_owned(), zookeeper.split([',', '/']).next().unwrap_or_default().to_owned()),
            ("{fault}".to_owned(), "oversell lab fault".to_owned()),
            ("{:id}".to_owned(), String::new()),
            ("{?id}".to_owned(), String::new()),
            ("{&id}".to_owned(), String::new()),
            ("{-id}".to_owned(), String::new()),
            ("{id}".to_owned(), "1".to_owned()),
            ("{user}".to_owned(), "1010".to_owned()),
            ("{user-2}".to_owned(), "1011".to_owned()),
        ];
        for (course, url) in ["8000", "8100", "8200"].iter().zip(instances) {
            let url = url.as_ref().trim_end_matches('/');
            let name = url.rsplit(':').next().unwrap_or_default();
            placeholders.push((format!("{{{course}}}"), url.to_owned()));
            placeholders.push((format!("{{name-{course}}}"), name.to_owned()));
        }
        for (n, url) in redis.iter().enumerate() {
            let name = if n == 0 { "{redis}".to_owned() } else { format!("{{redis-{}}}", n + 1) };
            let (host, port) = host_and_port(url.as_ref(), 6379);
            placeholders.push((name, format!("-h {host} -p {port}")));
        }
        Self(placeholders)
    }

    /// The placeholders of a lab.
    pub fn of_lab(at: &Addresses) -> Self {
        let instances: Vec<_> = at.instances.iter().map(|instance| &instance.url).collect();
        let redis: Vec<_> = at.redis.iter().map(|node| &node.url).collect();
        Self::new(&at.http, &instances, &at.mysql.url, &redis, &at.zookeeper.connect)
    }

    /// A copy in which this command stands for `{fault}`.
    pub fn with_fault(&self, command: &str) -> Self {
        self.with("{fault}", command)
    }

    /// A copy in which this product is named in keys, paths, queries and statements, and two users are those of the product.
    pub fn with_product(&self, id: i64) -> Self {
        self.with("{:id}", &format!(":{id}"))
            .with("{?id}", &format!("?stock_id={id}"))
            .with("{&id}", &format!("&stock_id={id}"))
            .with("{-id}", &format!("-{id}"))
            .with("{id}", &id.to_string())
            .with("{user}", &format!("{id}1"))
            .with("{user-2}", &format!("{id}2"))
    }

    /// A copy in which one placeholder is added or replaced.
    fn with(&self, name: &str, place: &str) -> Self {
        let mut placeholders = self.0.clone();
        placeholders.retain(|(known, _)| known != name);
        placeholders.push((name.to_owned(), place.to_owned()));
        Self(placeholders)
    }

    /// A copy of a chapter with all placeholders in its typed lines replaced.
    pub fn fill_chapter(&self, chapter: &Chapter) -> Chapter {
        let lessons = chapter.lessons.iter().map(|lesson| self.fill_lesson(lesson));
        Chapter { lessons: lessons.collect(), ..*chapter }
    }

    /// A copy of a lesson with all placeholders in its typed lines replaced.
    pub fn fill_lesson(&self, lesson: &Lesson) -> Lesson {
        Lesson { by_hand: lesson.by_hand.iter().map(|line| self.fill_line(line)).collect(), ..lesson.clone() }
    }

    /// A copy of a line with all placeholders replaced in what is typed and in what is expected; unknown words in braces stay.
    pub fn fill_line(&self, line: &TypedLine) -> TypedLine {
        let fill = |text: &str| {
            let placeholders = self.0.iter();
            placeholders.fold(text.to_owned(), |text, (name, place)| text.replace(name, place))
        };
        TypedLine { run: fill(&line.run), expect: fill(&line.expect), claimed: line.claimed.as_deref().map(fill), ..line.clone() }
    }
}

/// The options of `mysql` for a database URL. A password becomes a bare `-p`, so that `mysql` asks for it and it is never shown.
fn mysql_options(url: &str) -> String {
    let (host, port) = host_and_port(url, 3306);
    let uri = url.parse::<Uri>().ok();
    let user = uri.as_ref().and_then(|uri| uri.authority()?.as_str().rsplit_once('@')).map_or("root", |(user, _)| user);
    let (user, password) = user.split_once(':').map_or((user, ""), |(user, _)| (user, " -p"));
    let database = uri.as_ref().map_or("", |uri| uri.path().trim_start_matches('/'));
    format!("-h {host} -P {port} -u {user}{password} {database}")
}

/// The host and the port of a URL; 127.0.0.1 and `default_port` if it has none.
fn host_and_port(url: &str, default_port: u16) -> (String, u16) {
    let uri = url.parse::<Uri>().ok();
    let authority = uri.as_ref().and_then(Uri::authority);
    let host = authority.map_or("127.0.0.1", |authority| authority.host());
    (host.to_owned(), authority.and_then(|a| a.port_u16()).unwrap_or(default_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(run: &'static str, mysql: &str) -> String {
        let instances = ["http://127.0.0.1:8000", "http://127.0.0.1:8100/"];
        let redis = ["redis://127.0.0.1:16379", "redis://127.0.0.1:16380"];
        let placeholders = Placeholders::new("http://127.0.0.1:8080", &instances, mysql, &redis, "127.0.0.1:12181");
        placeholders.fill_line(&TypedLine::new(run, "")).run
    }

    #[test]
    fn a_line_leads_to_the_servers_of_the_cluster() {
        let mysql = "mysql://root@127.0.0.1:13306/test";
        for (run, typed) in [
            ("curl {http}/stock {8100}", "curl http://127.0.0.1:8080/stock http://127.0.0.1:8100"),
            ("mysql {mysql} -e 'select 1'", "mysql -h 127.0.0.1 -P 13306 -u root test -e 'select 1'"),
            ("redis-cli {redis-2} get stock", "redis-cli -h 127.0.0.1 -p 16380 get stock"),
            ("zkCli.sh {zookeeper} ls /", "zkCli.sh -server 127.0.0.1:12181 ls /"),
            ("{fault} pause {name-8100}", "oversell lab fault pause 8100"),
            (r#"curl -d '{"count":1}'"#, r#"curl -d '{"count":1}'"#),
        ] {
            assert_eq!(filled(run, mysql), typed);
        }
    }

    #[test]
    fn a_password_is_shown_to_nobody() {
        assert_eq!(filled("{mysql}", "mysql://shop:s3cret@db/test"), "-h db -P 3306 -u shop -p test");
    }
}
