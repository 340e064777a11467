//! The site of a frame. Rules and secrets depend on it, not on the tab's address.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::pattern;
use crate::snapshot::Node;

/// A frame's site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSite {
    /// Origin, as enforced by the browser: `https://shop.example`; `null` for an opaque one (sandboxed, `data:`).
    pub origin: String,
    /// Address, in the browser's form.
    pub url: String,
}

impl FrameSite {
    /// Returns the site of an address, without asking the frame.
    #[must_use]
    pub fn at(url: &str) -> Self {
        Self {
            origin: origin_of(url).unwrap_or("null").to_owned(),
            url: url.to_owned(),
        }
    }

    /// Returns its host; empty for an opaque origin.
    #[must_use]
    pub fn host(&self) -> &str {
        let Some((_, host)) = self.origin.split_once("://") else {
            return "";
        };
        // The colons of an IPv6 address are in brackets.
        match host.find(']') {
            Some(end) => host.get(..=end).unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        }
    }

    /// Returns the address for rules: a frame without its own (`about:srcdoc`) has that of its origin.
    #[must_use]
    pub fn address(&self) -> String {
        if origin_of(&self.url).is_some() || self.host().is_empty() {
            self.url.clone()
        } else {
            format!("{}/", self.origin)
        }
    }

    /// Returns its name for the user and the model.
    #[must_use]
    pub fn name(&self) -> String {
        if self.host().is_empty() {
            let url = self.url.split(['?', '#']).next().unwrap_or_default();
            format!("nobody's origin ({url})")
        } else {
            self.origin.clone()
        }
    }
}

/// Returns the origin of an `http` or `https` address in the browser's form.
fn origin_of(url: &str) -> Option<&str> {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|it| url.starts_with(it))?;
    let rest = url.get(scheme.len()..)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    url.get(..scheme.len() + end).filter(|_| end > 0)
}

/// Returns the addresses of cross-origin frames, each once: rules are checked for them as well as for the page.
#[must_use]
pub fn others(page: &str, frames: &[FrameSite]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for address in frames.iter().map(FrameSite::address) {
        let origin = origin_of(&address);
        if origin.is_some() && origin != origin_of(page) && !all.contains(&address) {
            all.push(address);
        }
    }
    all
}

/// A frame in the description of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Index of its element among those of the page; its content follows.
    pub holder: usize,
    /// Index after its last element.
    pub end: usize,
    /// Its site.
    pub site: FrameSite,
    /// Whether a rule denies its address.
    #[serde(default)]
    pub denied: bool,
}

/// Labels cross-origin frames, so that their content is not mistaken for the page's, and removes the content of
/// those that a rule denies.
pub fn name_strangers(nodes: &mut Vec<Node>, page: &str, frames: &[Inside]) {
    let mut hidden = Vec::new();
    for frame in frames.iter().filter(|it| it.site.origin != page) {
        if let Some(holder) = nodes.get_mut(frame.holder) {
            // The page cannot change this line, whatever it calls the frame.
            holder.role = "iframe".to_owned();
            let denied = if frame.denied { ": denied" } else { "" };
            holder.hint = format!("frame of {}{denied}", frame.site.name());
        }
        if frame.denied {
            hidden.push(frame.holder + 1..frame.end);
        }
    }
    let mut place = 0;
    nodes.retain(|_| {
        let is_hidden = hidden.iter().any(|it| it.contains(&place));
        place += 1;
        !is_hidden
    });
}

/// Why a secret cannot be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTyped {
    /// It does not exist, or is not for the page's site.
    NoSecret {
        /// Name.
        name: String,
        /// Host of the page.
        host: String,
    },
    /// It is not for the site of a frame around the field.
    Frame {
        /// Name.
        name: String,
        /// Site of the frame.
        site: String,
        /// Site of the page.
        page: String,
    },
}

impl fmt::Display for NotTyped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret { name, host } => write!(f, "There is no secret {name} for {host}"),
            Self::Frame { name, site, page } => write!(
                f,
                "The secret {name} is not typed: the field is in a frame of {site}, inside {page}, and {name} is not for that site"
            ),
        }
    }
}

/// Checks whether a secret may be typed into a field. `hosts` is its pattern of hosts, `None` if the secret does not exist;
/// `frames` are the frames around the field, from the innermost to the page: all of them must belong to these hosts.
///
/// # Errors
/// [`NotTyped`].
pub fn may_type(name: &str, hosts: Option<&str>, frames: &[FrameSite]) -> Result<(), NotTyped> {
    let page = frames.last().map_or("", FrameSite::host);
    let is_for = |host: &str| hosts.is_some_and(|it| !host.is_empty() && pattern::whole(it, host));
    if !is_for(page) {
        return Err(NotTyped::NoSecret {
            name: name.to_owned(),
            host: page.to_owned(),
        });
    }
    match frames.iter().find(|it| !is_for(it.host())) {
        None => Ok(()),
        Some(frame) => Err(NotTyped::Frame {
            name: name.to_owned(),
            site: frame.name(),
            page: page.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origin: &str, url: &str) -> FrameSite {
        FrameSite {
            origin: origin.to_owned(),
            url: url.to_owned(),
        }
    }

    #[test]
    fn hosts_and_addresses_by_table() {
        for (origin, url, host, address, name) in [
            (
                "https://shop.example",
                "https://shop.example/a?b",
                "shop.example",
                "https://shop.example/a?b",
                "https://shop.example",
            ),
            (
                "http://127.0.0.1:3000",
                "about:srcdoc",
                "127.0.0.1",
                "http://127.0.0.1:3000/",
                "http://127.0.0.1:3000",
            ),
            (
                "http://[::1]:3000",
                "http://[::1]:3000/",
                "[::1]",
                "http://[::1]:3000/",
                "http://[::1]:3000",
            ),
            (
                "null",
                "data:text/html,x?y",
                "",
                "data:text/html,x?y",
                "nobody's origin (data:text/html,x)",
            ),
            // A sandboxed frame has an opaque origin, wherever its document is from.
            (
                "null",
                "https://ads.example/x",
                "",
                "https://ads.example/x",
                "nobody's origin (https://ads.example/x)",
            ),
        ] {
            let it = of(origin, url);
            assert_eq!(
                (it.host(), it.address().as_str(), it.name().as_str()),
                (host, address, name)
            );
        }
    }

    #[test]
    fn others_are_those_of_other_origins_each_once() {
        let frames = [
            of("https://a.example", "https://a.example/x"),
            of("https://b.example", "https://b.example/x"),
            of("https://b.example", "https://b.example/x"),
            of("https://a.example:8443", "https://a.example:8443/"),
            of("http://a.example", "about:blank"),
            of("null", "about:srcdoc"),
            of("null", "https://c.example/"),
        ];
        assert_eq!(
            others("https://a.example/page", &frames),
            [
                "https://b.example/x",
                "https://a.example:8443/",
                "http://a.example/",
                "https://c.example/"
            ]
        );
    }

    #[test]
    fn frames_of_others_are_named_and_denied_ones_are_empty() {
        let mut nodes: Vec<Node> = [
            "page", "own", "text", "ads", "text", "nested", "text", "end",
        ]
        .into_iter()
        .map(|role| Node {
            role: role.to_owned(),
            ..Node::default()
        })
        .collect();
        let frame = |(holder, end), host: &str, denied| Inside {
            holder,
            end,
            site: of(&format!("https://{host}"), ""),
            denied,
        };
        let frames = [
            frame((1, 3), "a.example", false),
            frame((3, 7), "ads.example", true),
            frame((5, 7), "b.example", false),
        ];
        name_strangers(&mut nodes, "https://a.example", &frames);
        let left: Vec<(&str, &str)> = nodes
            .iter()
            .map(|it| (it.role.as_str(), it.hint.as_str()))
            .collect();
        assert_eq!(
            left,
            [
                ("page", ""),
                ("own", ""),
                ("text", ""),
                ("iframe", "frame of https://ads.example: denied"),
                ("end", "")
            ]
        );
    }

    #[test]
    fn secrets_are_for_all_frames_around_a_field() {
        let (shop, ads, nobody) = (
            of("https://shop.example", "https://shop.example/"),
            of("https://ads.example", "https://ads.example/"),
            of("null", "about:srcdoc"),
        );
        let said = |hosts, frames: &[&FrameSite]| {
            let frames: Vec<FrameSite> = frames.iter().map(|it| (*it).clone()).collect();
            may_type("PASS", hosts, &frames).map_err(|it| format!("{it}"))
        };
        assert_eq!(said(Some("shop.example"), &[&shop, &shop]), Ok(()));
        for frames in [
            &[&ads, &shop][..],
            &[&shop, &ads, &shop],
            &[&nobody, &shop],
            &[&shop, &ads],
            &[],
        ] {
            assert!(said(Some("shop.example"), frames).is_err(), "{frames:?}");
        }
        // A pattern for all hosts does not match an opaque origin.
        assert!(said(Some("*"), &[&nobody, &shop]).is_err());
        assert_eq!(
            said(None, &[&shop]).unwrap_err(),
            "There is no secret PASS for shop.example"
        );
        assert!(
            said(Some("shop.example"), &[&ads, &shop])
                .unwrap_err()
                .contains("in a frame of https://ads.example, inside shop.example")
        );
    }
}
