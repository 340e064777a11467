//! The accessibility tree of a page, including cross-origin frames and closed shadow roots.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::join_all;
use outrigger_browser_core::field::{self, Attributes, FieldKind};
use outrigger_browser_core::frame::Inside;
use outrigger_browser_core::snapshot::Node;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::Chromium;
use super::node::made;
use crate::error::BrowserError;
use crate::provider::{FrameSite, Look};

/// Maximum number of described elements of a page.
const MAX_NODES: usize = 20_000;
/// Maximum nesting of frames.
const MAX_DEPTH: usize = 8;

/// Attributes that distinguish graphical shapes.
const SHAPE: [&str; 11] = [
    "fill",
    "stroke",
    "r",
    "width",
    "height",
    "font-size",
    "cx",
    "cy",
    "x",
    "y",
    "points",
];

/// Number of classes shown for an element without a name, and their maximum length in bytes.
const MAX_CLASSES: usize = 2;
const MAX_CLASS: usize = 30;

/// Roles whose text repeats that of their children.
const REPEATING: [&str; 2] = ["InlineTextBox", "ListMarker"];

/// Facts about the elements of a process that are not in the accessibility tree.
#[derive(Default)]
pub(super) struct Details {
    pub(super) clickable: HashSet<i64>,
    pub(super) fields: HashMap<i64, FieldKind>,
    /// The look of shapes, and the page's names of clickable elements.
    pub(super) hints: HashMap<i64, String>,
}

/// The accessibility tree of a frame.
struct Part {
    document: String,
    nodes: Vec<Value>,
    /// Its child frames, by the node of their element.
    inside: HashMap<i64, String>,
}

impl Chromium {
    pub(super) async fn look_at(&self, tab: &str) -> Result<Look, BrowserError> {
        self.usable(tab)?;
        let (main, frames, url, title) = {
            let state = lock(&self.state);
            let it = self.known(&state, tab)?;
            (
                it.main.clone(),
                it.frames.clone(),
                it.info.url.clone(),
                it.info.title.clone(),
            )
        };
        let sessions: HashSet<String> = frames.values().map(|it| it.session.clone()).collect();
        let details = join_all(sessions.into_iter().map(|session| async move {
            let details = self.details(&session).await;
            (session, details)
        }));
        let sites = join_all(frames.iter().map(|(id, frame)| async {
            let site = self.site_of(tab, id, &frame.session).await;
            (id.clone(), site.unwrap_or_default())
        }));
        let parts = join_all(frames.iter().map(|(id, frame)| async {
            let (frame, id) = (frame.clone(), id.clone());
            let inside: Vec<String> = frames
                .iter()
                .filter(|(_, it)| it.parent.as_ref() == Some(&id))
                .map(|(child, _)| child.clone())
                .collect();
            (id.clone(), self.part(&id, &frame, inside).await)
        }));
        let (details, parts, sites) = tokio::join!(details, parts, sites);
        let details = details
            .into_iter()
            .map(|(session, it)| (session, Arc::new(it)));
        let mut page = Page {
            parts: self.parts_there(tab, &main, parts)?,
            details: details.collect(),
            sessions: frames
                .into_iter()
                .map(|(id, it)| (id, it.session))
                .collect(),
            sites: sites.into_iter().collect(),
            nodes: Vec::new(),
            frames: Vec::new(),
        };
        let origin = page.sites.get(&main).map(|it| it.origin.clone());
        let title = page.title(&main).unwrap_or(title);
        page.add(&main, 0, 0);
        Ok(Look {
            url,
            title,
            nodes: page.nodes,
            origin: origin.unwrap_or_default(),
            frames: page.frames,
        })
    }

    /// Returns the trees of existing frames. A frame may be removed meanwhile; the page itself may not.
    fn parts_there(
        &self,
        tab: &str,
        main: &str,
        parts: Vec<(String, Result<Part, BrowserError>)>,
    ) -> Result<HashMap<String, Part>, BrowserError> {
        let mut known = HashMap::new();
        for (id, part) in parts {
            match part {
                Ok(part) => {
                    known.insert(id, part);
                }
                Err(error) if id == main => {
                    self.usable(tab)?;
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        Ok(known)
    }

    async fn part(
        &self,
        id: &str,
        frame: &super::state::Frame,
        inside: Vec<String>,
    ) -> Result<Part, BrowserError> {
        let tree = self.connection.call(
            &frame.session,
            "Accessibility.getFullAXTree",
            json!({ "frameId": id }),
        );
        let owners = join_all(inside.into_iter().map(|child| async {
            let owner = self
                .connection
                .call(
                    &frame.session,
                    "DOM.getFrameOwner",
                    json!({ "frameId": child }),
                )
                .await;
            let node = owner.ok().and_then(|it| it["backendNodeId"].as_i64());
            node.map(|node| (node, child))
        }));
        let (tree, owners) = tokio::join!(tree, owners);
        let nodes = match tree?["nodes"].take() {
            Value::Array(nodes) => nodes,
            _ => Vec::new(),
        };
        Ok(Part {
            document: frame.document.clone(),
            nodes,
            inside: owners.into_iter().flatten().collect(),
        })
    }

    /// Returns which elements listen for clicks, the contents of fields, and the look of shapes.
    async fn details(&self, session: &str) -> Details {
        let taken = self
            .connection
            .call(
                session,
                "DOMSnapshot.captureSnapshot",
                json!({ "computedStyles": ["cursor"] }),
            )
            .await;
        let Ok(taken) = taken else {
            return Details::default();
        };
        let strings: Vec<&str> = taken["strings"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| it.as_str().unwrap_or_default())
            .collect();
        let mut details = Details::default();
        for document in items(&taken["documents"]) {
            details.add(&Document {
                nodes: &document["nodes"],
                layout: &document["layout"],
                strings: &strings,
            });
        }
        details
    }
}

fn index(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|it| usize::try_from(it).ok())
}

/// A document of a DOM snapshot.
struct Document<'a> {
    nodes: &'a Value,
    layout: &'a Value,
    strings: &'a [&'a str],
}

impl<'a> Document<'a> {
    fn text(&self, value: &Value) -> &'a str {
        index(value)
            .and_then(|it| self.strings.get(it))
            .copied()
            .unwrap_or_default()
    }

    fn id(&self, place: usize) -> Option<i64> {
        self.nodes["backendNodeId"][place].as_i64()
    }

    fn name(&self, place: usize) -> &'a str {
        self.text(&self.nodes["nodeName"][place])
    }

    /// Returns the attributes of a node as pairs.
    fn attributes(&self, list: &Value) -> Vec<(&'a str, &'a str)> {
        let list: Vec<&str> = items(list).map(|it| self.text(it)).collect();
        let pairs = list.chunks_exact(2);
        pairs
            .filter_map(|it| Some((*it.first()?, *it.get(1)?)))
            .collect()
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Elements whose click listeners belong to their content.
const OUTER: [&str; 5] = ["LABEL", "HTML", "BODY", "#text", "#document"];

impl Details {
    fn add(&mut self, document: &Document<'_>) {
        let listening = items(&document.nodes["isClickable"]["index"]).filter_map(index);
        for place in listening.filter(|it| !OUTER.contains(&document.name(*it))) {
            self.clickable.extend(document.id(place));
        }
        let styled = items(&document.layout["nodeIndex"]).filter_map(index);
        for (place, style) in styled.zip(items(&document.layout["styles"])) {
            let is_pointer = document.text(&style[0]) == "pointer";
            if is_pointer
                && !OUTER.contains(&document.name(place))
                && !self.is_inherited(document.nodes, place)
            {
                self.clickable.extend(document.id(place));
            }
        }
        for (place, list) in items(&document.nodes["attributes"]).enumerate() {
            if let Some(node) = document.id(place) {
                self.describe(node, document.name(place), &document.attributes(list));
            }
        }
    }

    /// Reads attributes of fields, and of shapes without a name.
    fn describe(&mut self, node: i64, name: &str, attributes: &[(&str, &str)]) {
        let get = |key: &str| {
            attributes
                .iter()
                .find(|(name, _)| *name == key)
                .map_or("", |(_, value)| *value)
        };
        match name {
            "INPUT" | "TEXTAREA" | "SELECT" => {
                let attributes = Attributes {
                    kind: get("type"),
                    autocomplete: get("autocomplete"),
                    name: get("name"),
                    id: get("id"),
                };
                if let Some(kind) = field::kind_of(attributes) {
                    self.fields.insert(node, kind);
                }
            }
            "circle" | "rect" | "polygon" | "ellipse" | "path" | "line" | "text" => {
                let shown = SHAPE
                    .into_iter()
                    .map(|key| (key, get(key)))
                    .filter(|(_, it)| !it.is_empty() && it.len() < 60);
                let words: String = shown
                    .map(|(key, it)| format!(" {key}={}", rounded(it)))
                    .collect();
                self.hints.insert(node, format!("{name}{words}"));
            }
            _ if self.clickable.contains(&node) || !get("tabindex").is_empty() => {
                self.hints.insert(node, called(get("id"), get("class")));
            }
            _ => {}
        }
    }

    /// Returns whether the cursor is inherited from a parent, which is then the clickable element.
    fn is_inherited(&self, nodes: &Value, place: usize) -> bool {
        let mut at = index(&nodes["parentIndex"][place]);
        let mut left = 40;
        while let (Some(place), 1..) = (at, left) {
            if nodes["backendNodeId"][place]
                .as_i64()
                .is_some_and(|it| self.clickable.contains(&it))
            {
                return true;
            }
            at = index(&nodes["parentIndex"][place]);
            left -= 1;
        }
        false
    }
}

/// Rounds a number for display.
fn rounded(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) => number.round().to_string(),
        Err(_) => text.to_owned(),
    }
}

/// Returns the page's name of an element: its id, or its first classes.
fn called(id: &str, classes: &str) -> String {
    if !id.is_empty() && id.len() <= MAX_CLASS {
        return format!("#{id}");
    }
    classes
        .split_ascii_whitespace()
        .take(MAX_CLASSES)
        .filter(|it| it.len() <= MAX_CLASS)
        .map(|it| format!(".{it}"))
        .collect()
}

/// A page assembled from its frames.
struct Page {
    parts: HashMap<String, Part>,
    details: HashMap<String, Arc<Details>>,
    sessions: HashMap<String, String>,
    /// The sites of the frames.
    sites: HashMap<String, FrameSite>,
    nodes: Vec<Node>,
    frames: Vec<Inside>,
}

impl Page {
    fn title(&self, frame: &str) -> Option<String> {
        let root = self.parts.get(frame)?.nodes.first()?;
        Some(root["name"]["value"].as_str()?.to_owned())
    }

    /// Adds the content of a frame at a depth.
    fn add(&mut self, frame: &str, depth: usize, level: usize) {
        let Some(part) = self.parts.remove(frame) else {
            return;
        };
        let details = self
            .sessions
            .get(frame)
            .and_then(|it| self.details.get(it))
            .cloned()
            .unwrap_or_default();
        let by_id: HashMap<&str, &Value> = part
            .nodes
            .iter()
            .filter_map(|it| Some((it["nodeId"].as_str()?, it)))
            .collect();
        let root = part.nodes.first();
        let mut open: Vec<(&Value, usize)> = root.map(|it| (it, depth)).into_iter().collect();
        while let Some((node, depth)) = open.pop() {
            if self.nodes.len() >= MAX_NODES {
                break;
            }
            let role = node["role"]["value"].as_str().unwrap_or_default();
            if REPEATING.contains(&role) {
                continue;
            }
            let made = made(node, role, depth, &part.document, &details);
            let is_field =
                made.field.is_some() || node["role"]["value"] == "textbox" && made.value.is_some();
            let id = made.key.node;
            self.nodes.push(made);
            if let Some(inside) = part.inside.get(&id).filter(|_| level < MAX_DEPTH) {
                let holder = self.nodes.len() - 1;
                self.add(inside, depth + 1, level + 1);
                self.frames.push(Inside {
                    holder,
                    end: self.nodes.len(),
                    // A frame that does not report its site has none.
                    site: self.sites.remove(inside).unwrap_or_default(),
                    denied: false,
                });
                continue;
            }
            if is_field {
                continue;
            }
            let children = node["childIds"].as_array().into_iter().flatten().rev();
            open.extend(
                children
                    .filter_map(|it| by_id.get(it.as_str()?))
                    .map(|it| (*it, depth + 1)),
            );
        }
    }
}
