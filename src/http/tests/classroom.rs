//! The lesson on show, guesses, and typed lines.

use super::{JSON, ask, send, service};

#[tokio::test]
async fn only_an_admin_types_lines_and_only_those_of_a_lesson() {
    let json = ("content-type", "application/json");
    let post = async |settings: &[(&str, &str)], path: &str| {
        let service = service(settings);
        send(
            &service,
            "POST",
            &format!("/classroom/lines/{path}"),
            &[JSON, json],
            "",
        )
        .await
    };
    let on = ("replays.enabled", "true");
    for (settings, path, status) in [
        (&[][..], "2.4.4.2/1", 403),
        (&[on, ("admin.token", "s3cret")], "2.4.4.2/1", 401),
        (&[on], "2.4.4.2/0", 404),
        (&[on], "2.4.4.2/99", 404),
        (&[on], "9.9/1", 404),
    ] {
        let answer = post(settings, path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    // The output is returned, and that it is not the expected one: there are no servers here.
    let answer = post(&[on], "2.4.4.2/1").await;
    assert_eq!(
        (answer.status, &answer.json()["expected"]),
        (200, &false.into())
    );
    assert!(
        answer.json()["printed"]
            .as_str()
            .is_some_and(|printed| !printed.is_empty())
    );
}

#[tokio::test]
async fn guesses_and_the_lesson_on_show_must_name_a_known_lesson() {
    let service = service(&[]);
    for (request, status) in [
        (r#"PUT /classroom/lesson {"lesson":"1.3"}"#, 204),
        (r#"PUT /classroom/lesson {"lesson":"9.9"}"#, 400),
        (
            r#"POST /classroom/guesses {"lesson":"1.3","who":"小明","guess":4998}"#,
            204,
        ),
        (
            r#"POST /classroom/guesses {"lesson":"1.3","who":"","guess":4998}"#,
            400,
        ),
        (
            r#"POST /classroom/guesses {"lesson":"1.3","who":"小明","guess":-1}"#,
            400,
        ),
    ] {
        let answer = ask(&service, request).await;
        // A wrong form is 422, a wrong meaning 400.
        let told = if answer.status == 422 {
            400
        } else {
            answer.status
        };
        assert_eq!(told, status, "{request}: {}", answer.body);
    }
}
