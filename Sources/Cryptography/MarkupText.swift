// SPDX-License-Identifier: Apache-2.0

extension StringProtocol {
    /// The text for HTML and XML, between tags and in quoted attributes: a reference for each of the five characters
    /// with a meaning there.
    package var markupEscaped: String {
        var result = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
