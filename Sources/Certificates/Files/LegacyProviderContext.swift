// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// An OpenSSL library context with the legacy algorithms (RC2, single DES), which keeps them away from the rest of the
/// process. Only for reading identity files. Objects created in the context become invalid with it: copy them first.
final class LegacyProviderContext {
    let context: OpaquePointer
    private let providers: [OpaquePointer]

    /// Nil if OpenSSL's legacy provider is not installed.
    init?() {
        guard let context = OSSL_LIB_CTX_new() else { return nil }
        let providers = ["default", "legacy"].compactMap { (name: String) in OSSL_PROVIDER_load(context, name) }
        guard providers.count == 2 else {
            for provider in providers { OSSL_PROVIDER_unload(provider) }
            OSSL_LIB_CTX_free(context)
            return nil
        }
        self.context = context
        self.providers = providers
    }

    deinit {
        for provider in providers { OSSL_PROVIDER_unload(provider) }
        OSSL_LIB_CTX_free(context)
    }
}
