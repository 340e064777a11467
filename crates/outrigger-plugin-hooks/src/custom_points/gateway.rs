//! Requests of a plugin's process for its custom points and events. Refusals are logged up to a limit per minute; the rest
//! are counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use outrigger_js::Refused;
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugin_package::custom_points::Declarations;
use outrigger_plugin_status::{Notice, NoticeFn};
use outrigger_protocol::custom_points::{EventEmit, PointCall, PointCalled};
use outrigger_protocol::hook::HookAudit;
use outrigger_protocol::hook::{Decision, HookRecord, OutcomeKind};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::turn::HookPayload;
use outrigger_stdx::sync::lock;
use outrigger_stdx::tally::Tally;

use crate::custom_points::links::Link;
use crate::host::HookHost;
use crate::pipeline::{Pipeline, PipelineContext};
use outrigger_plugin_supervisor::failures::counted;
use outrigger_plugin_supervisor::host_proxy::{CustomPoints, Ran};

/// Maximum nesting depth of custom points and events.
const DEPTH: usize = 8;
/// Maximum number of concurrent points of one plugin, whatever reached them: a call that has lost its chain (a timer, say)
/// cannot be followed and is limited by this.
const AT_ONCE: usize = 32;
/// Maximum size in bytes of a point's input and output together, and of an event's payload, as JSON.
const MAX_CALL: usize = 1024 * 1024;
const MAX_EVENT: usize = 64 * 1024;
/// Maximum number of events that one plugin may publish within a second.
const RATE: (usize, Duration) = (50, Duration::from_secs(1));

/// Maximum number of refusals, and of chains of custom points, recorded within [`MINUTE`]: a loop would fill the log with
/// them.
const REFUSALS: u32 = 30;
const CHAINS: u32 = 300;
/// Maximum number of recorded characters of a name and of a reason.
const MAX_NAME: usize = 200;
const MAX_WHY: usize = 500;
const MINUTE: Duration = Duration::from_secs(60);

/// Gateway of one process, whose only plugin has a manifest.
pub struct PointGateway {
    host: Weak<HookHost>,
    plugin: usize,
    id: String,
    under_way: AtomicUsize,
    published: Mutex<VecDeque<Instant>>,
    refusals: Mutex<Tally>,
    chains: Mutex<Tally>,
    notice: NoticeFn,
}

/// A refusal: the rule as the audit names it, and a text.
type No = (&'static str, String);

struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CustomPoints for PointGateway {
    fn call(&self, call: PointCall) -> BoxFuture<'_, Ran> {
        Box::pin(self.run(call))
    }

    fn emit(&self, emit: &EventEmit) -> Result<u32, (Refused, Option<Box<HookRecord>>)> {
        self.publish(emit)
    }
}

impl PointGateway {
    /// Creates the gateway for the process of the plugin `id`.
    pub fn new(host: Weak<HookHost>, plugin: usize, id: String, notice: NoticeFn) -> Self {
        Self {
            host,
            plugin,
            id,
            under_way: AtomicUsize::new(0),
            published: Mutex::default(),
            refusals: Mutex::new(Tally::new(REFUSALS, MINUTE)),
            chains: Mutex::new(Tally::new(CHAINS, MINUTE)),
            notice,
        }
    }

    /// Runs the chain of a point that the plugin declared.
    async fn run(&self, call: PointCall) -> Ran {
        let Some(host) = self.host.upgrade() else {
            let gone = Refused::new("custom_point.gone", "the plugins are being ended");
            return (Err(gone), Vec::new());
        };
        let name = call.point.clone();
        let link = self.link(&host, call.chain, call.depth);
        let begun = self.begin(&host, &call, &link);
        let (own, _under_way) = match begun {
            Ok(begun) => begun,
            Err(no) => {
                let record = self.refusal(&host, &name, &link, &no);
                return (Err(refused(&no)), record.into_iter().collect());
            }
        };
        let Some(point) = own.point(&name) else {
            return (
                Err(Refused::new(
                    "custom_point.gone",
                    "it is no longer declared",
                )),
                Vec::new(),
            );
        };
        let context = PipelineContext {
            session: link.session,
            turn: link.turn,
            step: link.step,
            cancel: None,
            path: link.path,
            depth: link.depth,
            guards_only: false,
            by: link.by,
        };
        let items = vec![HookPayload::new(call.input, call.output)];
        let result = Pipeline(host).run(point.point, items, context).await;
        let answer = match result.block {
            Some(block) => Err(Refused::by_handler("point.refused", block)),
            None => Ok(PointCalled {
                output: result.outputs.into_iter().next().unwrap_or_default(),
            }),
        };
        (answer, self.listed(result.records))
    }

    fn begin<'a>(
        &'a self,
        host: &HookHost,
        call: &PointCall,
        link: &Link,
    ) -> Result<(Arc<Declarations>, UnderWay<'a>), No> {
        let own = self.own(host, &call.point, "point", |own, name| {
            own.point(name).is_some()
        })?;
        let point = own
            .point(&call.point)
            .ok_or(("undeclared", String::new()))?;
        let path = || {
            link.path
                .iter()
                .copied()
                .chain([point.point.name()])
                .collect::<Vec<_>>()
                .join(" -> ")
        };
        if link.path.contains(&point.point.name()) {
            return Err(("cycle", format!("it calls itself: {}", path())));
        }
        if link.deep() >= DEPTH {
            return Err((
                "depth",
                format!(
                    "more than {DEPTH} points and events come out of each other: {}",
                    path()
                ),
            ));
        }
        let size = call.input.to_string().len() + call.output.to_string().len();
        if size > MAX_CALL {
            return Err((
                "size",
                format!("{size} bytes are more than the {MAX_CALL} of a call"),
            ));
        }
        for (what, schema, value) in [
            ("input", &point.input, &call.input),
            ("output", &point.output, &call.output),
        ] {
            if let Some(Err(why)) = schema.as_ref().map(|schema| schema.check(value)) {
                return Err(("schema", format!("its {what}: {why}")));
            }
        }
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            return Err((
                "rate",
                format!("more than {AT_ONCE} calls of points are under way"),
            ));
        }
        Ok((own, UnderWay(&self.under_way)))
    }

    /// Returns the origin of a call or an event of the plugin: a chain of the host, or an event, as its process reports.
    fn link(&self, host: &HookHost, chain: Option<u64>, depth: u32) -> Link {
        chain
            .and_then(|chain| host.links.get(chain, self.plugin))
            .unwrap_or(Link {
                depth,
                ..Link::default()
            })
    }

    /// Checks whether the plugin may publish an event; returns its depth, or the refusal to record.
    fn publish(&self, emit: &EventEmit) -> Result<u32, (Refused, Option<Box<HookRecord>>)> {
        let Some(host) = self.host.upgrade() else {
            return Err((
                Refused::new("custom_point.gone", "the plugins are being ended"),
                None,
            ));
        };
        let link = self.link(&host, emit.chain, emit.depth);
        self.may_tell(&host, emit, &link).map_err(|no| {
            let record = self.refusal(&host, &emit.event, &link, &no);
            (refused(&no), record.map(Box::new))
        })
    }

    fn may_tell(&self, host: &HookHost, emit: &EventEmit, link: &Link) -> Result<u32, No> {
        let own = self.own(host, &emit.event, "event", |own, name| {
            own.event(name).is_some()
        })?;
        if link.deep() >= DEPTH {
            return Err((
                "cycle",
                format!(
                    "it comes out of {DEPTH} events and points of plugins, each out of the one before: what an event leads to may not lead to it for ever"
                ),
            ));
        }
        let size = emit.properties.to_string().len();
        if size > MAX_EVENT {
            return Err((
                "size",
                format!("{size} bytes are more than the {MAX_EVENT} of an event"),
            ));
        }
        if !emit.properties.is_object() {
            return Err((
                "schema",
                "the properties of an event are an object".to_owned(),
            ));
        }
        let schema = own
            .event(&emit.event)
            .and_then(|event| event.schema.as_ref());
        if let Some(Err(why)) = schema.map(|schema| schema.check(&emit.properties)) {
            return Err(("schema", why));
        }
        let (most, within) = RATE;
        let now = Instant::now();
        let mut published = lock(&self.published);
        while published
            .front()
            .is_some_and(|at| now.duration_since(*at) >= within)
        {
            published.pop_front();
        }
        if published.len() >= most {
            return Err(("rate", format!("more than {most} events within a second")));
        }
        published.push_back(now);
        Ok(u32::try_from(link.deep() + 1).unwrap_or(u32::MAX))
    }

    /// Returns the plugin's declaration of that name.
    fn own(
        &self,
        host: &HookHost,
        name: &str,
        what: &str,
        has: impl Fn(&Declarations, &str) -> bool,
    ) -> Result<Arc<Declarations>, No> {
        let own = host.registry.own(self.plugin);
        if has(&own, name) {
            return Ok(own);
        }
        if let Some(owner) = host.registry.declares(|own| has(own, name)) {
            return Err((
                "owner",
                format!("the {what} {name} is declared by {owner}, and no other plugin reaches it"),
            ));
        }
        if HookPoint::parse(name).is_some() {
            return Err((
                "owner",
                format!("{name} is a point of the program, and no plugin reaches it"),
            ));
        }
        Err((
            "undeclared",
            format!(
                "no {what} {name} is declared: it belongs under [[{what}s]] in outrigger.plugin.toml"
            ),
        ))
    }

    /// Returns the records of a chain, unless there were too many.
    fn listed(&self, records: Vec<HookRecord>) -> Vec<HookRecord> {
        let mut chains = lock(&self.chains);
        if chains.take(Instant::now()).is_some() {
            return records;
        }
        if chains.has_just_filled() {
            drop(chains);
            self.limit(format!(
                "it called its own points more than {CHAINS} times within a minute; the runs of their handlers are counted and not listed"
            ));
        }
        Vec::new()
    }

    fn limit(&self, cause: String) {
        tracing::warn!("plugin {}: {cause}", self.id);
        (self.notice)(Notice::Limit {
            plugins: vec![self.id.clone()],
            cause,
        });
    }

    /// Returns the record of a refusal; `None` if there were too many.
    fn refusal(
        &self,
        host: &HookHost,
        name: &str,
        link: &Link,
        (rule, why): &No,
    ) -> Option<HookRecord> {
        let unreported = {
            let mut refusals = lock(&self.refusals);
            let unreported = refusals.take(Instant::now());
            if refusals.has_just_filled() {
                drop(refusals);
                self.limit(format!(
                    "more than {REFUSALS} of its calls and events were refused within a minute, the last because {}; more are counted and not listed",
                    why.chars().take(MAX_WHY).collect::<String>()
                ));
            }
            unreported?
        };
        // The plugin chooses the names, of any length.
        let name: String = name.chars().take(MAX_NAME).collect();
        let message = counted(why, MAX_WHY, unreported, "refusals");
        tracing::warn!("plugin {}: {name} is refused: {message}", self.id);
        Some(HookRecord {
            session: link.session.clone(),
            turn: link.turn.clone(),
            decision: Decision::Refused,
            message: Some(message),
            at: (host.now)(),
            audit: HookAudit {
                refused: Some(rule),
                step: link.step.clone(),
                ..HookAudit::default()
            },
            ..HookRecord::new(
                &name,
                &name,
                PluginId(self.id.clone()),
                OutcomeKind::Refused,
            )
        })
    }
}

/// Reports what was counted until the process ended.
impl Drop for PointGateway {
    fn drop(&mut self) {
        for (what, tally) in [
            ("refused calls and events of it", &self.refusals),
            ("calls of its own points", &self.chains),
        ] {
            let rest = lock(tally).rest();
            if rest > 0 {
                self.limit(format!("{rest} {what} are not listed"));
            }
        }
    }
}

fn refused((rule, why): &No) -> Refused {
    let code = match *rule {
        "undeclared" => "custom_point.undeclared",
        "owner" => "custom_point.owner",
        "cycle" => "custom_point.cycle",
        "depth" => "custom_point.depth",
        "size" => "custom_point.size",
        "rate" => "custom_point.rate",
        _ => "custom_point.schema",
    };
    Refused::new(code, why.clone())
}
