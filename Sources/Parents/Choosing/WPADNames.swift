// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The URLs at which Web Proxy Auto-Discovery looks for a script, over DNS only.
///
/// The search goes up from the machine's own domain, and ends before the domains under which anyone can register a
/// name: `wpad.com` must not decide on routes.
package enum WPADNames {
    /// For `eng.corp.example`: the URLs at `wpad.eng.corp.example` and `wpad.corp.example`. None for a public suffix.
    package static func urls(forDomain domain: HostName, isPublicSuffix: (HostName) -> Bool) -> [String] {
        var urls: [String] = []
        var next: HostName? = domain.kind == .name ? domain : nil
        while let domain = next, domain.parent != nil, !isPublicSuffix(domain) {
            urls.append("http://wpad.\(domain.text)/wpad.dat")
            next = domain.parent
        }
        return urls
    }
}
