// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// Generates a source file with the commit of the checkout, each time that the package is built.
@main
struct RecordCommit: BuildToolPlugin {
    /// `$1` is the package's folder, `$2` that of the generated file. The file only changes if the commit does. A
    /// folder that is not the root of a repository, such as an unpacked archive in another one, has no commit.
    private static let script = """
        commit=none
        if [ "$(git -C "$1" rev-parse --show-toplevel 2>/dev/null)" = "$1" ]; then
            commit=$(git -C "$1" rev-parse --short=12 HEAD 2>/dev/null) || commit=none
            [ -z "$(git --no-optional-locks -C "$1" status --porcelain --untracked-files=no 2>/dev/null)" ] ||
                commit="$commit with changes"
        fi
        text="/// The commit of the checkout that this program was built from.
        let builtCommit = \\"$commit\\""
        [ "$(cat "$2/BuiltCommit.swift" 2>/dev/null)" = "$text" ] || printf '%s\\n' "$text" > "$2/BuiltCommit.swift"
        """

    func createBuildCommands(context: PluginContext, target: Target) throws -> [Command] {
        let folder = context.pluginWorkDirectoryURL
        return [
            .prebuildCommand(
                displayName: "Record the commit", executable: URL(fileURLWithPath: "/bin/sh"),
                arguments: ["-c", Self.script, "sh", context.package.directoryURL.path, folder.path],
                outputFilesDirectory: folder)
        ]
    }
}
