use axum::body::Body;
use axum::routing::any;
use tower::ServiceExt as _;

use super::*;

fn guard(hostname: &str) -> Guard {
    Guard {
        login: Some(Login {
            username: "opencode".into(),
            password: "s3cret:x".into(),
        }),
        hostname: hostname.into(),
        hosts: vec!["Box.lan".into()],
        cors: vec!["https://my.page".into()],
        has_pages: true,
        page: None,
    }
}

async fn asked(guard: Guard, method: &str, uri: &str, headers: &[(&str, &str)]) -> Response {
    let router = guard.around(Router::new().fallback(any(|| async { "in" })));
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    router
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap()
}

fn basic(text: &str) -> String {
    format!("Basic {}", STANDARD.encode(text))
}

/// The page's token opens what the password opens, for the lifetime of the server that created it.
#[tokio::test]
async fn tokens_of_pages_by_table() {
    let data = tempfile::tempdir().unwrap();
    let session = || {
        let login = guard("127.0.0.1").login.unwrap();
        let address = "127.0.0.1:4096".parse().unwrap();
        Arc::new(PageSession::new(data.path(), login, address).unwrap())
    };
    let (ended, lives) = (session(), session());
    let bearer = |token: &str| format!("Bearer {token}");
    let own = bearer(lives.token());
    for (page, headers, status) in [
        (Some(&lives), vec![("authorization", own.as_str())], 200),
        (None, vec![("authorization", own.as_str())], 401),
        (Some(&ended), vec![("authorization", own.as_str())], 401),
        (Some(&lives), vec![("authorization", "Bearer ")], 401),
        (
            Some(&lives),
            vec![
                ("authorization", own.as_str()),
                ("authorization", "Basic x"),
            ],
            401,
        ),
        (
            Some(&lives),
            vec![("authorization", basic("opencode:s3cret:x").as_str())],
            200,
        ),
    ] {
        let guard = Guard {
            page: page.cloned(),
            ..guard("127.0.0.1")
        };
        let all = [vec![("host", "127.0.0.1:4096")], headers].concat();
        let answer = asked(guard, "GET", "/x", &all).await;
        assert_eq!(answer.status(), status, "{all:?}");
    }
    let guard = Guard {
        page: Some(Arc::clone(&lives)),
        ..guard("127.0.0.1")
    };
    let basic = basic(&format!("opencode:{}", lives.token()));
    let headers = [
        ("host", "127.0.0.1:4096"),
        ("authorization", basic.as_str()),
    ];
    assert_eq!(asked(guard, "GET", "/x", &headers).await.status(), 401);
}

/// Covers requests that a page has a browser send without naming the page, and a server without pages.
#[tokio::test]
async fn other_sites_by_table() {
    let login = basic("opencode:s3cret:x");
    for (has_pages, headers, status) in [
        (true, &[("sec-fetch-site", "cross-site")][..], 403),
        (true, &[("sec-fetch-site", "same-site")], 403),
        (true, &[("sec-fetch-site", "same-origin")], 200),
        (true, &[("sec-fetch-site", "none")], 200),
        (
            true,
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://my.page"),
            ],
            200,
        ),
        (true, &[("origin", "http://localhost:3000")], 200),
        (false, &[("origin", "http://localhost:3000")], 403),
        (false, &[("origin", "tauri://localhost")], 403),
        (false, &[("origin", "http://127.0.0.1:4096")], 200),
        (false, &[], 200),
    ] {
        let guard = Guard {
            has_pages,
            ..guard("127.0.0.1")
        };
        let known = [
            ("host", "127.0.0.1:4096"),
            ("authorization", login.as_str()),
        ];
        let all = [&known[..], headers].concat();
        let response = asked(guard, "GET", "/x", &all).await;
        assert_eq!(response.status(), status, "{has_pages} {headers:?}");
    }
}

/// What a browser sends for a page of another port without asking first: with the password that it has kept, which the page does not know.
#[tokio::test]
async fn a_page_of_another_port_sends_nothing_that_a_form_could() {
    let other = ("origin", "http://127.0.0.1:3000");
    let json = ("content-type", "application/json");
    let text = ("content-type", "Text/Plain; charset=utf-8");
    let directory = ("x-opencode-directory", "%2Fp");
    for (method, headers, status) in [
        ("POST", vec![other], 403),
        ("POST", vec![("origin", "http://localhost")], 403),
        ("POST", vec![("origin", "http://[::1]:1")], 403),
        ("POST", vec![other, text], 403),
        ("POST", vec![other, ("content-type", "")], 403),
        ("POST", vec![other, ("x-forwarded-for", "1.2.3.4")], 403),
        ("POST", vec![other, json], 200),
        ("POST", vec![other, directory], 200),
        ("GET", vec![other], 200),
        ("DELETE", vec![other], 200),
        // Its own page, one that the user named, a client that is not a page, and one of OpenCode's programs.
        ("POST", vec![("origin", "http://127.0.0.1:4096")], 200),
        ("POST", vec![("origin", "http://localhost:7000")], 200),
        ("POST", vec![], 200),
        ("POST", vec![("origin", "tauri://localhost")], 200),
    ] {
        let guard = Guard {
            cors: vec!["http://localhost:7000".to_owned()],
            ..guard("127.0.0.1")
        };
        let login = basic("opencode:s3cret:x");
        let known = [
            ("host", "127.0.0.1:4096"),
            ("authorization", login.as_str()),
        ];
        let all = [&known[..], &headers].concat();
        let answer = asked(guard, method, "/x", &all).await;
        assert_eq!(answer.status(), status, "{method} {headers:?}");
    }
}

#[test]
fn only_a_terminal_is_reached_by_ticket() {
    for (uri, want) in [
        ("/pty/pty_1/connect?ticket=x", true),
        ("/pty/pty_1/connect?a=b&ticket=x", true),
        ("/pty/pty_1/connect?ticket=", false),
        ("/pty/pty_1/connect", false),
        ("/pty//connect?ticket=x", false),
        ("/pty/pty_1/connect/x?ticket=x", false),
        ("/pty/a/b/connect?ticket=x", false),
        ("/pty?ticket=x", false),
        ("/session?x=/pty/a/connect&ticket=x", false),
    ] {
        assert_eq!(brings_ticket(&uri.parse().unwrap()), want, "{uri}");
    }
}

#[tokio::test]
async fn passwords_by_table() {
    let good = basic("opencode:s3cret:x");
    let encoded = STANDARD.encode("opencode:s3cret:x");
    let token = format!("/x?auth_token={}", encoded.replace('=', "%3D"));
    let wrong_token = format!("/x?auth_token={}", STANDARD.encode("opencode:no"));
    type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], u16);
    let cases: &[Case<'_>] = &[
        ("/x", &[], 401),
        ("/x", &[("authorization", &good)], 200),
        ("/x", &[("AUTHORIZATION", &good)], 200),
        (
            "/x",
            &[("authorization", &good.replace("Basic", "bAsIc"))],
            200,
        ),
        (
            "/x",
            &[("authorization", &good.replace("Basic", "Bearer"))],
            401,
        ),
        ("/x", &[("authorization", &encoded)], 401),
        ("/x", &[("authorization", &basic("opencode:s3cret"))], 401),
        ("/x", &[("authorization", &basic("Opencode:s3cret:x"))], 401),
        ("/x", &[("authorization", &basic(":s3cret:x"))], 401),
        ("/x", &[("authorization", &basic("opencode:"))], 401),
        ("/x", &[("authorization", &basic(""))], 401),
        ("/x", &[("authorization", "Basic")], 401),
        ("/x", &[("authorization", "Basic !!!")], 401),
        // With two of them, servers may read different ones.
        (
            "/x",
            &[("authorization", &good), ("authorization", &good)],
            401,
        ),
        (
            "/x",
            &[("authorization", &basic("a:b")), ("authorization", &good)],
            401,
        ),
        ("/x", &[("proxy-authorization", &good)], 401),
        ("/x", &[("cookie", &format!("authorization={good}"))], 401),
        (&token, &[], 200),
        (&token.replace("auth_token", "AUTH_TOKEN"), &[], 401),
        (&wrong_token, &[], 401),
        // The query goes before the header, as in OpenCode.
        (&wrong_token, &[("authorization", &good)], 401),
        ("/x?auth_token=", &[("authorization", &good)], 200),
        ("/nothing", &[], 401),
        ("//x", &[], 401),
        (
            "/x",
            &[("upgrade", "websocket"), ("connection", "upgrade")],
            401,
        ),
        (
            "/x",
            &[
                ("x-opencode-directory", "/"),
                ("x-forwarded-for", "127.0.0.1"),
            ],
            401,
        ),
    ];
    for (uri, headers, status) in cases {
        let all: Vec<_> = [("host", "127.0.0.1:4096")]
            .into_iter()
            .chain(headers.iter().copied())
            .collect();
        let response = asked(guard("127.0.0.1"), "GET", uri, &all).await;
        assert_eq!(response.status(), *status, "{uri} {headers:?}");
        let challenge = response.headers().get("www-authenticate");
        assert_eq!(challenge.is_some(), *status == 401, "{uri} {headers:?}");
    }
    for method in ["HEAD", "OPTIONS", "TRACE", "POST", "BREW"] {
        let response = asked(guard("127.0.0.1"), method, "/x", &[("host", "localhost")]).await;
        assert_eq!(response.status(), 401, "{method}");
    }
    let open = Guard {
        login: None,
        ..guard("127.0.0.1")
    };
    assert_eq!(
        asked(open, "GET", "/x", &[("host", "localhost")])
            .await
            .status(),
        200
    );
}

#[tokio::test]
async fn names_of_the_server_by_table() {
    let cases = [
        ("127.0.0.1", "127.0.0.1:4096", true),
        ("127.0.0.1", "localhost", true),
        ("127.0.0.1", "LOCALHOST.:4096", true),
        ("127.0.0.1", "app.localhost:1", true),
        ("127.0.0.1", "127.8.8.8", true),
        ("127.0.0.1", "[::1]:4096", true),
        ("127.0.0.1", "[::ffff:127.0.0.1]", true),
        ("127.0.0.1", "box.LAN:4096", true),
        ("127.0.0.1", "evil.example", false),
        ("127.0.0.1", "127.0.0.1.evil.example", false),
        ("127.0.0.1", "localhost.evil.example", false),
        ("127.0.0.1", "evillocalhost", false),
        ("127.0.0.1", "localhost@evil.example", false),
        ("127.0.0.1", "evil.example@localhost", false),
        ("127.0.0.1", "192.168.0.5", false),
        ("127.0.0.1", "[fe80::1]", false),
        ("127.0.0.1", "0.0.0.0", false),
        ("127.0.0.1", "2130706433", false),
        ("127.0.0.1", "", false),
        ("0.0.0.0", "192.168.0.5:4096", true),
        ("0.0.0.0", "evil.example", false),
        ("192.168.0.5", "192.168.0.5", true),
        ("192.168.0.5", "192.168.0.6", false),
        ("my.host", "my.host:80", true),
    ];
    let login = basic("opencode:s3cret:x");
    for (bound, host, known) in cases {
        let headers = [("host", host), ("authorization", login.as_str())];
        let status = asked(guard(bound), "GET", "/x", &headers).await.status();
        assert_eq!(status, if known { 200 } else { 403 }, "{host:?} on {bound}");
    }
    let login = ("authorization", login.as_str());
    let two = [("host", "localhost"), ("host", "evil.example"), login];
    assert_eq!(
        asked(guard("127.0.0.1"), "GET", "/x", &two).await.status(),
        403
    );
    assert_eq!(
        asked(guard("127.0.0.1"), "GET", "/x", &[login])
            .await
            .status(),
        403
    );
    let whole = "http://evil.example/x";
    let headers = [("host", "localhost"), login];
    assert_eq!(
        asked(guard("127.0.0.1"), "GET", whole, &headers)
            .await
            .status(),
        403
    );
}

#[tokio::test]
async fn pages_by_table() {
    let cases = [
        ("http://localhost:3000", true),
        ("http://127.0.0.1:1", true),
        ("http://[::1]:1", true),
        ("tauri://localhost", true),
        ("http://tauri.localhost", true),
        ("https://tauri.localhost", true),
        ("oc://renderer", true),
        ("https://app.opencode.ai", true),
        ("https://opencode.ai", true),
        ("https://my.page", true),
        // Its own origin, under the name that the client uses.
        ("http://box.lan:4096", true),
        ("null", false),
        ("", false),
        ("file://", false),
        ("https://my.page.evil.example", false),
        ("http://my.page", false),
        ("http://localhost.evil.example", false),
        ("http://localhost@evil.example", false),
        ("http://evil.example", false),
        ("http://opencode.ai", false),
        ("https://evilopencode.ai", false),
        ("http://box.lan", false),
        ("http://localhost:3000 http://evil.example", false),
        ("http://127.0.0.1:4610.evil.example", false),
        ("http://localhost:evil.example", false),
        ("http://[::1].evil.example", false),
    ];
    let login = basic("opencode:s3cret:x");
    for (origin, known) in cases {
        let headers = [
            ("host", "box.lan:4096"),
            ("origin", origin),
            ("authorization", login.as_str()),
        ];
        let response = asked(guard("127.0.0.1"), "GET", "/x", &headers).await;
        assert_eq!(
            response.status(),
            if known { 200 } else { 403 },
            "{origin:?}"
        );
        let allowed = response.headers().get("access-control-allow-origin");
        assert_eq!(
            allowed.map(HeaderValue::as_bytes),
            known.then_some(origin.as_bytes())
        );
    }
    let open = Guard {
        login: None,
        ..guard("127.0.0.1")
    };
    // Attempt 1477 of docs/bypass/attempts.toml.
    for (origin, status) in [
        ("https://app.opencode.ai", 403),
        ("http://localhost:3000", 403),
        ("http://127.0.0.1:3000", 403),
        ("http://[::1]:3000", 403),
        ("http://localhost", 200),
        ("tauri://localhost", 200),
        ("https://my.page", 200),
    ] {
        let page = [("host", "localhost"), ("origin", origin)];
        let response = asked(open.clone(), "GET", "/x", &page).await;
        assert_eq!(response.status(), status, "{origin}");
    }
    // What a page may send is answered without a password, and only to pages that may send requests.
    for (origin, status) in [("http://localhost:3000", 204), ("http://evil.example", 403)] {
        let headers = [
            ("host", "localhost"),
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let response = asked(guard("127.0.0.1"), "OPTIONS", "/x", &headers).await;
        assert_eq!(response.status(), status, "{origin}");
        let allowed = response
            .headers()
            .get("access-control-allow-headers")
            .is_some();
        assert_eq!(allowed, status == 204);
    }
}

/// The page's files need no password, from whatever link; nothing similar is allowed, and names and origins are checked.
#[tokio::test]
async fn the_page_by_table() {
    let link = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    let frame = [link[0], link[1], ("sec-fetch-dest", "iframe")];
    let image = [link[0], ("sec-fetch-mode", "no-cors")];
    let (page, name) = ("/outrigger/web/", ("host", "localhost"));
    for (method, uri, headers, status) in [
        ("GET", page, vec![name], 200),
        ("HEAD", "/outrigger/web/a-b.js", vec![name], 200),
        ("GET", page, [vec![name], link.to_vec()].concat(), 200),
        ("GET", page, [vec![name], frame.to_vec()].concat(), 403),
        ("GET", page, [vec![name], image.to_vec()].concat(), 403),
        ("GET", page, vec![("host", "evil.example")], 403),
        (
            "GET",
            page,
            vec![name, ("origin", "http://evil.example")],
            403,
        ),
        ("POST", page, vec![name], 401),
        ("POST", "/outrigger/web/session", vec![name], 200),
        ("PUT", "/outrigger/web/session", vec![name], 401),
        ("GET", "/outrigger/web/session/key", vec![name], 401),
        ("GET", "/outrigger/web/../v1/audit", vec![name], 401),
        ("GET", "/outrigger/web/a/b", vec![name], 401),
        ("GET", "/outrigger/webx", vec![name], 401),
        ("GET", "/outrigger/v1/audit", vec![name], 401),
        (
            "GET",
            "/outrigger/v1/audit",
            [vec![name], link.to_vec()].concat(),
            403,
        ),
    ] {
        let answer = asked(guard("127.0.0.1"), method, uri, &headers).await;
        assert_eq!(answer.status(), status, "{method} {uri} {headers:?}");
    }
}
