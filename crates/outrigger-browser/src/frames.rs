//! Whose the frames are that an action reaches: secrets and rules go by them as well as by the tab.

use outrigger_browser_core::action::Kind;

use crate::error::BrowserError;
use crate::provider::{ActionTarget, FrameSite, Provider, TabInfo};
use crate::secrets::Secrets;

/// The frames that an action may reach. A point and a key may be of any frame of the page.
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
    // Behind a dialog no frame answers; the rules of the tab count.
    if is_anywhere && provider.dialog(&tab.tab).is_none() {
        found.extend(provider.frames(&tab.tab, None).await?);
    }
    Ok(found)
}

/// A secret for a field: all the frames that it is in, and the page, have to be of sites that it is for.
pub(crate) fn secret(
    secrets: &Secrets,
    name: &str,
    frames: &[FrameSite],
) -> Result<String, BrowserError> {
    let page = frames.last().map(FrameSite::host).unwrap_or_default();
    let value = secrets.get(name, &page)?;
    match frames
        .iter()
        .find(|it| secrets.get(name, &it.host()).is_err())
    {
        None => Ok(value.to_owned()),
        Some(frame) => Err(BrowserError::SecretFrame {
            name: name.to_owned(),
            site: frame.name(),
            page,
        }),
    }
}
