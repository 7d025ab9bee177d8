package org.apache.spark.scheduler.bellows

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

/** Executors are divided among stages as the pool does it. Argument: a file of its vectors. */
object DivisionTest {
  def main(args: Array[String]): Unit = {
    val lines = Files.readAllLines(Paths.get(args(0))).asScala
    for ((line, n) <- lines.zipWithIndex) {
      val v = Json.parse(line)
      val (is, should) = (divided(v), numbers(v.path("granted")))
      require(is == should, s"vector ${n + 1}: granted $is, should be $should: $line")
    }
    require(lines.size > 100, s"${lines.size} vectors")
    println(s"${lines.size} divisions")
  }

  private def divided(v: JsonNode): IndexedSeq[Int] = {
    val stages = v.path("stages").elements().asScala.toIndexedSeq
    val left = stages.map(_.path("left").asInt)
    val next = stages.map(s => numbers(s.path("next")))
    val below = Division.below(left, stages.indices.map(n => stages.indices.filter(next(_).contains(n))))
    val ready = stages.indices.filter(i => stages(i).path("ready").asBoolean && left(i) > 0)
    val granted = Division.divide(v.path("executors").asInt, ready.map { i =>
      Division.Claim(Division.weight(left(i), below(i)), left(i), stages(i).path("held").asInt)
    })
    stages.indices.map(i => ready.indexOf(i)).map(at => if (at < 0) 0 else granted(at))
  }

  private def numbers(list: JsonNode): IndexedSeq[Int] = list.elements().asScala.map(_.asInt).toIndexedSeq
}
