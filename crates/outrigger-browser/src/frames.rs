//! The frames that an action can reach: rules apply to them as well as to the tab.

use outrigger_browser_core::action::Kind;

use crate::error::BrowserError;
use crate::provider::{ActionTarget, FrameSite, Provider, TabInfo};

/// Returns the frames that an action can reach. A point or a key can reach any frame of the page.
pub(crate) async fn frames(
    provider: &dyn Provider,
    tab: &TabInfo,
    kind: Kind,
    places: [Option<&ActionTarget>; 2],
) -> Result<Vec<FrameSite>, BrowserError> {
    let mut found = Vec::new();
    let mut is_anywhere = kind == Kind::Press && places[0].is_none();
    for place in places.into_iter().flatten() {
        match place {
            ActionTarget::Element(key) => {
                found.extend(provider.frames(&tab.tab, Some(key)).await?);
            }
            ActionTarget::Point(_) => is_anywhere = true,
        }
    }
    // A dialog belongs to its frame.
    if kind == Kind::Dialog {
        let open = provider.dialog(&tab.tab);
        found.extend(open.map(|it| FrameSite::at(&it.url)));
    }
    // While a dialog is open no frame responds; the rules of the tab apply.
    if is_anywhere && provider.dialog(&tab.tab).is_none() {
        found.extend(provider.frames(&tab.tab, None).await?);
    }
    Ok(found)
}
