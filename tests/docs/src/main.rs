//! Draws the charts of the documents from the data beside them.
//!
//! ```text
//! docs/data/measure.sh              # measures anew: minutes, on an idle machine
//! cargo run -p hectare-docs         # docs/src/images/*.svg from docs/data/*.csv
//! ```
use hectare_docs::{charts, root};

fn main() -> std::io::Result<()> {
    for (name, text) in charts::all()? {
        let path = root().join("docs/src/images").join(name);
        std::fs::write(&path, text)?;
        println!("{}", path.display());
    }
    Ok(())
}
