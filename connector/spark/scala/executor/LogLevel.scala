package org.apache.spark.executor.bellows

import java.util.Locale

import org.apache.logging.log4j.{Level, LogManager}

import org.apache.spark.internal.Logging
import org.apache.spark.util.Utils

/** The level of the logs of this JVM, which serves applications with levels of their own. */
private[bellows] object LogLevel extends Logging {
  /** What the configuration of the pool says. */
  private val own: Level = {
    log // Spark reads the configuration when it is first asked for a logger.
    LogManager.getRootLogger.getLevel
  }

  /** Logs at a level from now on; at that of the pool if there is none, or it is unknown. */
  def use(level: Option[String]): Unit = synchronized {
    val wanted = level.map(name => Level.toLevel(name.toUpperCase(Locale.ROOT), own)).getOrElse(own)
    if (LogManager.getRootLogger.getLevel != wanted) Utils.setLogLevel(wanted)
  }
}
