use alloc::vec;

use serde_json::{Value, json};

use super::*;

fn facts() -> Facts {
    let element =
        |reference: &str, role: &str, name: &str, value: Option<&str>, states: &[&str]| Element {
            reference: reference.into(),
            role: role.into(),
            name: name.into(),
            value: value.map(Into::into),
            states: states.iter().map(|it| (*it).into()).collect(),
        };
    Facts {
        url: "http://shop/cart?n=1".into(),
        title: "Cart".into(),
        text: "Your cart\n  has 2   items".into(),
        elements: vec![
            element("e1", "button", "Pay", None, &["disabled"]),
            element("e2", "textbox", "Code", Some("ABC"), &[]),
            element("e3", "listitem", "One", None, &[]),
            element("e4", "listitem", "Two", None, &[]),
        ],
        requests: vec![
            Request {
                method: "POST".into(),
                url: "http://shop/api/add".into(),
                status: Some(500),
            },
            Request {
                method: "GET".into(),
                url: "http://shop/api/list".into(),
                status: None,
            },
        ],
        errors: vec!["boom".into()],
        downloads: vec![Download {
            name: "bill.pdf".into(),
            complete: false,
        }],
        stable: false,
    }
}

#[test]
fn each_kind_holds_and_fails() {
    let holds = [
        json!({"url": "/cart"}),
        json!({"url": "http://shop/*"}),
        json!({"title": "Cart"}),
        json!({"text": "cart has 2 items"}),
        json!({"gone": "3 items"}),
        json!({"role": "button", "name": "Pay"}),
        json!({"role": "button", "state": "disabled"}),
        json!({"role": "button", "name": "Buy", "count": 0}),
        json!({"role": "listitem", "count": 2}),
        json!({"ref": "e2", "value": "ABC"}),
        json!({"ref": "e2", "state": "!disabled"}),
        json!({"request": "/api/add", "method": "post"}),
        json!({"request": "/api/add", "status": 500}),
    ];
    let fails: Vec<(Value, &str)> = vec![
        (
            json!({"url": "/done"}),
            "failed_verify: expected the address /done, but saw: http://shop/cart?n=1",
        ),
        (
            json!({"title": "Done"}),
            "failed_verify: expected the title \"Done\", but saw: \"Cart\"",
        ),
        (
            json!({"text": "has 3 items"}),
            "failed_verify: expected the text \"has 3 items\", but saw: \"has 2   items\"",
        ),
        (
            json!({"gone": "2 items"}),
            "failed_verify: expected the text \"2 items\" gone, but saw: it is still there",
        ),
        (
            json!({"role": "button", "name": "Buy"}),
            "failed_verify: expected an element button \"Buy\", but saw: there is none",
        ),
        (
            json!({"role": "listitem", "count": 3}),
            "failed_verify: expected 3 times listitem, but saw: there are 2",
        ),
        (
            json!({"ref": "e2", "value": "XYZ"}),
            "failed_verify: expected an element e2 with the value \"XYZ\", but saw: textbox \"Code\" has the value \"ABC\" and the states []",
        ),
        (
            json!({"request": "/api/add", "status": 200}),
            "failed_verify: expected a request to /api/add with the status 200, but saw: POST http://shop/api/add with the status 500",
        ),
        (
            json!({"request": "/api/gone"}),
            "failed_verify: expected a request to /api/gone, but saw: GET http://shop/api/list, not answered",
        ),
        (
            json!({"no_console_error": true}),
            "failed_verify: expected no error on the console, but saw: boom",
        ),
        (
            json!({"download": "*.pdf"}),
            "failed_verify: expected the download \"*.pdf\", complete, but saw: \"bill.pdf\", which is not complete",
        ),
        (
            json!({"stable": true}),
            "failed_verify: expected a page that does not change, but saw: it still changes",
        ),
    ];
    for value in holds {
        let expectation: Expectation = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(expectation.unmet(&facts()), [], "{value}");
    }
    for (value, want) in fails {
        let expectation: Expectation = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(sentence(&expectation.unmet(&facts())), want, "{value}");
    }
    assert!(serde_json::from_value::<Expectation>(json!({"texts": "x"})).is_err());
}
